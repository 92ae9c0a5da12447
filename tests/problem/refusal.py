"""Assert that a call raises an error of the right class and code, with its data and a one-line message."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stagewise import StagewiseError
from stagewise.problem.errors import ErrorCode


@contextmanager
def refused(kind: type[StagewiseError], *parts: object) -> Iterator[None]:
    """Assert that the block raises this class with this code, and that its data contain all other parts."""
    with pytest.raises(StagewiseError) as caught:
        yield
    text = str(caught.value)
    assert type(caught.value) is kind
    assert issubclass(kind, ValueError)
    assert "\n" not in text
    assert ". " not in text.replace("...", "").rstrip(".")
    assert 15 < len(text) < 400
    data = [str(value) for value in caught.value.details.values()]
    for part in parts:
        if isinstance(part, ErrorCode):
            assert caught.value.code is part
        else:
            assert any(str(part) in value for value in data), f"{part!r} is not in the data of {text!r}"


def refuses(call: Callable[[], Any], kind: type[StagewiseError], *parts: object) -> None:
    """Assert that a call raises this error."""
    with refused(kind, *parts):
        call()
