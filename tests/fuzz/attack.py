"""What an attack is: a valid call with one or two of its arguments replaced, and what must not come of it."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.calls import LARGE, Call
from tests.fuzz.hostile import HOSTILE

from stagewise import StagewiseError

Way = dict[str, str]  # from an argument's name to the name of the hostile value it is replaced by


class Fault(AssertionError):
    """An interior error where a sentence belongs, or a sentence that is none."""


def refused(function: Callable[..., Any], arguments: dict[str, Any]) -> bool:
    """Call, and say whether it was refused; anything but an answer or one short line is a fault."""
    try:
        function(**arguments)
    except StagewiseError as error:
        text = str(error)
        if not 15 < len(text) < 400 or not text.isprintable():
            raise Fault(f"{len(text)} characters: {text!r}") from error
        return True
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "stagewise" in Path(f.filename).parts]
        line = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "no line of ours"
        raise Fault(f"{type(error).__name__} at {line}: {str(error)[:200]!r}") from error
    return False


def singles(call: Call) -> Iterator[Way]:
    """Yield every way to replace one argument."""
    for name in call.arguments:
        for value in HOSTILE:
            if name not in call.patient or value not in LARGE:
                yield {name: value}


def pairs(call: Call, count: int, seed: int) -> Iterator[Way]:
    """Yield ways to replace two arguments, by chance."""
    chance, ways = Random(seed), list(singles(call))
    for _ in range(count if len(call.arguments) > 1 else 0):
        yield {**chance.choice(ways), **chance.choice(ways)}


def replaced(call: Call, way: Way) -> dict[str, Any]:
    """Return the arguments of an attack."""
    return {**call.arguments, **{name: HOSTILE[value] for name, value in way.items()}}


def faults(call: Call, ways: Iterable[Way]) -> list[str]:
    """Return what went wrong with these replacements; the valid call itself must be taken."""
    found = ["the valid call is refused"] if refused(call.function, call.arguments) else []
    for way in ways:
        try:
            refused(call.function, replaced(call, way))
        except Fault as fault:
            found.append(f"{way}: {fault}")
    return found
