import resource
from contextlib import contextmanager

import pytest


@pytest.fixture
def limited(capsys):  # whose files would be limited too
    """Within ``limited(n)`` no file grows beyond n bytes, as on a full disk."""

    @contextmanager
    def limited(n_bytes):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited
