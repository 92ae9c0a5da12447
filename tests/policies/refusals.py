"""Refusals of many bad values: an error of one class, whose code is one of several."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stagewise import StagewiseError
from stagewise.problem.errors import ErrorCode


@contextmanager
def refused_with(kind: type[StagewiseError], *codes: ErrorCode, names: str = "") -> Iterator[None]:
    """Assert that the block raises this class with one of the codes, and that its details contain `names`."""
    with pytest.raises(StagewiseError) as caught:
        yield
    assert type(caught.value) is kind
    assert caught.value.code in codes
    assert "\n" not in str(caught.value)
    assert not names or any(names in str(value) for value in caught.value.details.values())
