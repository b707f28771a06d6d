"""The sizes of ``conf/bilm``, for programs without a configuration (a test compares the two)."""

from __future__ import annotations

from elmo_tasks.bilm.options import BiLMOptions

_PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
_MINI_FILTERS = ((1, 8), (2, 8), (3, 16), (4, 32), (5, 64), (6, 128), (7, 256))

SIZES = {
    "mini": BiLMOptions(_MINI_FILTERS, character_dim=16, n_highway=1, dim=512, projection_dim=128),
    "small": BiLMOptions(_PUBLISHED_FILTERS, character_dim=16, n_highway=1, dim=1024, projection_dim=128),
    "medium": BiLMOptions(_PUBLISHED_FILTERS, character_dim=16, n_highway=1, dim=2048, projection_dim=256),
    "original": BiLMOptions(_PUBLISHED_FILTERS, character_dim=16, n_highway=2, dim=4096, projection_dim=512),
}
"""``mini`` is the bundled one; the others are the published sizes."""
