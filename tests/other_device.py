"""A device that is not the CPU, on a machine that has none: tensors that say they are elsewhere, with numbers here.

A tensor on ``AWAY`` is a shell around a CPU tensor that does its work. An operation that takes tensors of both devices
fails where a GPU would fail, so that a model which passes makes all that it makes on its input's device.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar
from unittest import mock

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

Module = TypeVar("Module", bound=nn.Module)

AWAY = torch.device("meta")  # PyTorch knows it everywhere, and nothing else here uses it

_aten = torch.ops.aten
_BETWEEN_DEVICES = {_aten.copy_.default, _aten._to_copy.default}
_WITH_CPU = {  # whose second argument may be, or must be, on the CPU
    _aten.index.Tensor,
    _aten.index_put_.default,
    _aten.index_put.default,
    _aten._index_put_impl_.default,
    _aten._pack_padded_sequence.default,
    _aten._pad_packed_sequence.default,
    _aten._pack_padded_sequence_backward.default,
}


class MixedDevicesError(RuntimeError):
    """An operation on tensors of two devices."""


class Shell(Tensor):
    """Looks like a tensor on ``AWAY``."""

    within: Tensor

    @staticmethod
    def __new__(cls, within: Tensor) -> Shell:
        shell = torch.Tensor._make_wrapper_subclass(
            cls,
            within.size(),
            strides=within.stride(),
            storage_offset=within.storage_offset(),
            dtype=within.dtype,
            device=AWAY,
        )
        shell.within = within
        return shell

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func}: a tensor on {AWAY} is used outside of other_device()")


class _FromPython(TorchFunctionMode):
    """What PyTorch does with a tensor's numbers before any operation."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and torch.device(kwargs.get("device") or "cpu") == AWAY:
            return torch.tensor(*args, **{**kwargs, "device": "cpu"}).to(AWAY)
        if isinstance(args[0] if args else None, Shell):
            if func is Tensor.new_tensor:
                return torch.tensor(*args[1:], **{"dtype": args[0].dtype, **kwargs}).to(AWAY)
            if func is Tensor.tolist:
                return args[0].within.tolist()
            if func in (Tensor.__getitem__, Tensor.__setitem__):
                args = (args[0], _places(args[1]), *args[2:])
            if func is Tensor.numpy:
                raise MixedDevicesError("numpy() of a tensor that is not on the CPU")
        return func(*args, **kwargs)


def _places(index: Any) -> Any:
    """An index whose lists are tensors, which PyTorch would make by itself, without numbers, on ``AWAY``."""
    if isinstance(index, tuple):
        return tuple(map(_places, index))
    return torch.tensor(index) if isinstance(index, list) else index


@contextmanager
def other_device() -> Iterator[None]:
    """Within it there is a device ``AWAY``, which has one precision."""
    casts = mock.patch.multiple("torch", autocast=_autocast, is_autocast_enabled=_is_autocast_enabled)
    with _Operations(), _FromPython(), casts:
        yield


_AUTOCAST, _IS_AUTOCAST_ENABLED = torch.autocast, torch.is_autocast_enabled


def _is_autocast_enabled(device: str) -> bool:
    return torch.device(device) != AWAY and _IS_AUTOCAST_ENABLED(device)


def _autocast(device: str, *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
    return nullcontext() if torch.device(device) == AWAY else _AUTOCAST(device, *args, **kwargs)


class _Operations(TorchDispatchMode):
    """An operation on shells is one on what is within them."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        _refuse_a_mix(func, args, tensors)
        shells = {id(tensor.within): tensor for tensor in tensors if isinstance(tensor, Shell)}
        to = kwargs.get("device")
        away = bool(shells) if to is None else torch.device(to) == AWAY
        if not shells and not away:
            return func(*args, **kwargs)
        if to is not None:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        if func is _aten.copy_.default:
            away = isinstance(args[0], Shell)
        found = func(*tree_map(_within, args), **tree_map(_within, kwargs))

        def outside(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if id(value) in shells:  # changed in place
                return shells[id(value)]
            return Shell(value) if away else value

        if func is _aten._pack_padded_sequence.default:
            return outside(found[0]), found[1]  # sizes of steps, which PyTorch wants on the CPU
        return tree_map(outside, found)


def _within(value: Any) -> Any:
    return value.within if isinstance(value, Shell) else value


def _refuse_a_mix(func: Any, args: Any, tensors: list[Tensor]) -> None:
    """As on a GPU: single numbers may come from the CPU, and so may the places in an indexed tensor."""
    if any(x.device == AWAY and not isinstance(x, Shell) for x in tensors):
        raise RuntimeError(f"{func}: a tensor without numbers, made in a way that this file does not know")
    if func in _BETWEEN_DEVICES:
        return
    if func in _WITH_CPU and isinstance(args[0], Shell):
        free = {id(leaf) for leaf in tree_leaves(args[1])}
        tensors = [x for x in tensors if id(x) not in free]
    if any(isinstance(x, Shell) for x in tensors) and any(not isinstance(x, Shell) and x.dim() for x in tensors):
        where = [f"{'away' if isinstance(x, Shell) else 'here'} {tuple(x.shape)}" for x in tensors]
        raise MixedDevicesError(f"{func} on tensors of two devices: {', '.join(where)}")


def sent_away(module: Module) -> Module:
    """A copy whose parameters and buffers are on ``AWAY``; ``Module.to`` does not take shells."""
    module = copy.deepcopy(module)
    with other_device():
        for part in module.modules():
            for name, parameter in part._parameters.items():
                if parameter is not None:
                    part._parameters[name] = nn.Parameter(Shell(parameter.detach()), parameter.requires_grad)
            for name, buffer in part._buffers.items():
                if buffer is not None:
                    part._buffers[name] = Shell(buffer)
    return module


def here(value: Any) -> Any:
    """What is within the shells of any nest of lists, tuples and dicts."""
    return tree_map(_within, value)
