"""Which short numbers a processor multiplies fast, and what follows for the preset of biLM training."""

from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir

from elmo_tasks.config.compose import validate
from elmo_tasks.places import CONF
from elmo_tasks.processor import device_for, has_gpu, has_instructions, use_exact_products
from elmo_tasks.training.processes import device_settings

CPUINFO = Path("/proc/cpuinfo")
FLAGS = {"bfloat16": {"avx512_bf16", "amx_bf16"}, "int8": {"avx512_vnni", "avx_vnni", "amx_int8"}}


def preset_precision(accelerator):
    """Of ``experiment=bilm``."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return validate(compose("config", ["experiment=bilm", f"trainer.accelerator={accelerator}"])).to_json()[
            "trainer"
        ]["precision"]


@pytest.mark.skipif(
    not CPUINFO.is_file() or "flags\t" not in CPUINFO.read_text(), reason="the kernel of an x86 processor tells"
)
@pytest.mark.parametrize("precision", FLAGS)
def test_the_kernel_says_the_same(precision):
    flags = next(line for line in CPUINFO.read_text().splitlines() if line.startswith("flags\t")).split()
    assert has_instructions(precision) == bool(FLAGS[precision] & set(flags))


@pytest.mark.parametrize(
    ("capabilities", "bfloat16", "int8"),
    [
        ({"avx2": True, "avx512_bf16": False}, False, False),
        ({"avx512_bf16": True}, True, False),
        ({"avx_vnni": True}, False, True),
        ({"bf16": True, "i8mm": True}, True, True),
        ({"neon": True}, False, False),
    ],
)
def test_one_of_several_instructions_is_enough(monkeypatch, capabilities, bfloat16, int8):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert (has_instructions("bfloat16"), has_instructions("int8")) == (bfloat16, int8)
    assert preset_precision("cpu") == ("bf16-mixed" if bfloat16 else "32-true")


def test_where_pytorch_cannot_tell_they_are_believed_to_be_there(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert has_instructions("bfloat16")


@pytest.mark.parametrize(("accelerator", "precision"), [("auto", "bf16-mixed"), ("cpu", "32-true")])
def test_on_a_gpu_the_preset_has_16_bits(monkeypatch, accelerator, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert has_gpu()
    assert preset_precision(accelerator) == precision


@pytest.mark.parametrize(
    ("accelerator", "with_gpu", "without"),
    [("auto", "cuda", "cpu"), ("gpu", "cuda", "cpu"), ("cuda", "cuda", "cpu"), ("cpu", "cpu", "cpu")],
)
def test_a_gpu_is_used_unless_the_cpu_is_asked_for(monkeypatch, accelerator, with_gpu, without):
    for found, expected in ((True, with_gpu), (False, without)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda found=found: found)
        assert device_for(accelerator) == expected
        settings = device_settings({"trainer": {"accelerator": accelerator, "devices": 1, "num_nodes": 1}})
        assert settings["accelerator"] == (expected if accelerator == "auto" else accelerator)


def test_products_are_those_of_float32_in_matrices_and_in_cudnn(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    use_exact_products()
    assert not torch.backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == "highest"
