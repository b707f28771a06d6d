"""Our GRU and CRF against plain ones with the same numbers: ``python benchmarks/layers.py``.

Both are timed alternately in one process, and the best of several turns counts. Between runs, compare ratios rather
than times. Set OMP_NUM_THREADS to the number of cores. For the LSTM see ``alternating_lstm.py``.
"""

from __future__ import annotations

import torch
import torchcrf
from pairs import best_ms, line, print_head
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from elmo_tasks.nn.crf import CRF
from elmo_tasks.nn.gru import BiGRU
from elmo_tasks.training.memory import keep_freed_memory


def print_gru() -> None:
    for n_texts, n_tokens, width, hidden in ((45, 150, 400, 45), (45, 150, 356, 90), (45, 400, 180, 90)):
        gru, x = BiGRU(width, hidden), torch.randn(n_texts, n_tokens, width, requires_grad=True)
        lengths = torch.linspace(n_tokens, n_tokens * 3 // 4, n_texts).long()
        mask = torch.arange(n_tokens) < lengths.unsqueeze(1)

        def plain(gru: BiGRU = gru, x: Tensor = x, lengths: Tensor = lengths) -> Tensor:
            return gru.gru(pack_padded_sequence(x, lengths, batch_first=True))[0].data  # type: ignore[no-any-return]

        def ours(gru: BiGRU = gru, x: Tensor = x, mask: Tensor = mask) -> Tensor:
            return gru(x, mask)  # type: ignore[no-any-return]

        times = best_ms(lambda f=ours: f().sum().backward(), lambda f=plain: f().sum().backward())
        packed = pack_padded_sequence(ours(), lengths, batch_first=True).data
        difference = float((packed - plain()).abs().max().detach())
        line(f"BiGRU {width} to {hidden}, {n_texts} x {n_tokens}", *times, difference, int(lengths.sum()))


def print_crf() -> None:
    n_texts, n_tokens, n_tags = 32, 50, 9
    anything = torch.ones(n_tags, dtype=torch.bool)
    ours, plain = CRF(anything.expand(n_tags, n_tags), anything, anything), torchcrf.CRF(n_tags, batch_first=True)
    for name, other in (("transitions", "transitions"), ("start", "start_transitions"), ("end", "end_transitions")):
        getattr(plain, other).data.copy_(getattr(ours, name).data)
    x = torch.randn(n_texts, n_tokens, n_tags, requires_grad=True)
    tags, mask = torch.randint(n_tags, (n_texts, n_tokens)), torch.ones(n_texts, n_tokens, dtype=torch.bool)
    size, total = f"{n_texts} x {n_tokens} x {n_tags}", n_texts * n_tokens
    times = best_ms(lambda: ours.loss(x, tags, mask).sum().backward(), lambda: (-plain(x, tags, mask)).backward())
    difference = float((ours.loss(x, tags, mask).sum() + plain(x, tags, mask)).abs().detach())
    line(f"CRF loss, {size}", *times, difference, total)
    times = best_ms(lambda: ours.decode(x, mask), lambda: plain.decode(x, mask))
    line(f"CRF Viterbi, {size}", *times, float(ours.decode(x, mask) != plain.decode(x, mask)), total)


def main() -> None:
    keep_freed_memory()
    torch.manual_seed(0)
    print_head()
    print_gru()
    print_crf()


if __name__ == "__main__":
    main()
