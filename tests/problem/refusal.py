"""What a refusal is: one clear sentence, of the right class, with the value and the rule in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stagewise import StagewiseError


@contextmanager
def refused(kind: type[StagewiseError], *parts: object) -> Iterator[None]:
    """Assert that the block is refused with this class, in one sentence that contains all the parts."""
    with pytest.raises(StagewiseError) as caught:
        yield
    text = str(caught.value)
    assert type(caught.value) is kind
    assert issubclass(kind, ValueError)
    assert "\n" not in text
    assert ". " not in text.rstrip(".")
    assert 15 < len(text) < 400
    for part in parts:
        assert str(part) in text, f"{part!r} is not in {text!r}"


def refuses(call: Callable[[], Any], kind: type[StagewiseError], *parts: object) -> None:
    """Hold a call to being refused."""
    with refused(kind, *parts):
        call()
