"""What an attack is: a valid call with one or two of its arguments replaced, and what must not come of it."""

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.calls import LARGE, Call
from tests.fuzz.hostile import HOSTILE

from stagewise import StagewiseError

OURS = str(Path("src") / "stagewise")


class Fault(AssertionError):
    """An interior error where a sentence belongs, or a sentence that is none."""


def attempted(function: Any, arguments: dict[str, Any]) -> bool:
    """Call, and say whether it was refused; anything but a result or a sentence is a fault."""
    try:
        function(**arguments)
    except StagewiseError as error:
        text = str(error)
        if not 15 < len(text) < 400 or not text.isprintable():
            raise Fault(f"{len(text)} characters: {text!r}") from error
        return True
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if OURS in frame.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "before our code"
        raise Fault(f"{type(error).__name__} at {place}: {str(error)[:200]!r}") from error
    return False


def singles(call: Call) -> Iterator[dict[str, str]]:
    """Yield every way to replace one argument, as the argument's name and the hostile value's."""
    for name in call.arguments:
        for value in HOSTILE:
            if name not in call.patient or value not in LARGE:
                yield {name: value}


def pairs(call: Call, count: int, seed: int) -> Iterator[dict[str, str]]:
    """Yield ways to replace two arguments, by chance."""
    chance, ways = Random(seed), list(singles(call))
    for _ in range(count if len(call.arguments) > 1 else 0):
        yield {**chance.choice(ways), **chance.choice(ways)}


def faults(call: Call, ways: Iterator[dict[str, str]]) -> Iterator[str]:
    """Yield what went wrong with these replacements."""
    for way in ways:
        with contextlib.suppress(KeyError):
            arguments = {**call.arguments, **{name: HOSTILE[value] for name, value in way.items()}}
            try:
                attempted(call.function, arguments)
            except Fault as fault:
                yield f"{way}: {fault}"
