"""The two lanes: tests marked `compiled` need Numba; all others also run on kernels as the Python they are."""

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, where nothing is compiled, what proves nothing or takes hours there."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="needs compiled kernels: make test-compiled"))
