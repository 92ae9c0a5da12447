"""What is given back to a person in an error message: always one line, and short, whatever it was."""

import reprlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

LONGEST_VALUE = 120  # characters of a value in a message
LONGEST = 399  # characters of a message


def one_line(text: str, longest: int) -> str:
    """Return a text as one line of at most so many characters: its middle goes first, as the rule stands at the end.

    >>> one_line(f"two{chr(10)}lines", 20)
    'two lines'
    >>> one_line("a" * 50 + "b", 20)
    'aaaaaaaaaa ... aaaab'
    """
    plain = " ".join(line.strip() for line in text.splitlines())
    if not plain.isprintable():
        plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)
    if len(plain) <= longest:
        return plain
    end = (longest - 5) // 3
    return f"{plain[: longest - 5 - end]} ... {plain[-end:]}"


class Plainly(reprlib.Repr):
    """As `reprlib` shows values, but numbers of NumPy as Python's own: whose they are is of no interest."""

    def repr1(self, x: Any, level: int) -> str:
        """Return a value as text."""
        np: Any = sys.modules.get("numpy")  # who has not loaded it has none of its numbers, and need not load it
        plain = np is not None and isinstance(x, np.generic) and not isinstance(x, np.void)
        return super().repr1(x.item() if plain else x, level)


PLAINLY = Plainly()


def shown(value: Any) -> str:
    """Return a value as an error message shows it: never longer than a line, and never failing.

    >>> import numpy as np
    >>> shown(list(range(100))), shown([np.float32(0.5), np.True_])
    ('[0, 1, 2, 3, 4, 5, ...]', '[0.5, True]')
    """
    try:
        # a class is often given where one of its objects belongs, and then its whole name tells
        text = repr(value) if isinstance(value, type) else PLAINLY.repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = f"a {type(value).__name__} of very many digits"
    except Exception:
        text = f"a {type(value).__name__} that cannot be shown"
    return one_line(text, LONGEST_VALUE)


def nearest(name: Any, names: Sequence[str]) -> str:
    """Return a question after the name that was meant, or nothing where none is near.

    >>> nearest("optout", ["click", "opt_out"]), nearest("x", ["click"])
    ("; did you mean 'opt_out'?", '')
    >>> nearest("lc-lucb", ["LCLUCB", "LinUCB"])
    "; did you mean 'LCLUCB'?"
    """
    if not isinstance(name, str):
        return ""
    alike = {bare(other): other for other in reversed(names)}  # capitals, hyphens and spaces are no other name
    near = get_close_matches(name, names, 1) or [alike[one] for one in get_close_matches(bare(name), list(alike), 1)]
    return f"; did you mean {near[0]!r}?" if near else ""


def bare(name: str) -> str:
    """Return a name without what is easily mistaken in it."""
    return "".join(c for c in name.casefold() if c.isalnum())


def percent(value: float) -> str:
    """Return what a percentage is as a share, where a number looks like one.

    >>> percent(2.0), percent(0.5)
    ('; 2 % is 0.02', '')
    """
    return f"; {value:g} % is {value / 100.0:g}" if 1.0 <= value <= 100.0 else ""


def several(count: float, word: str = "outcome") -> str:
    """Return how many there are, as a sentence says it.

    >>> several(1.0), several(1200.0)
    ('1 outcome', '1,200 outcomes')
    """
    return f"{count:,.0f} {word}{'s' * (round(count) != 1)}"


def average(count: float, value: str, where: str = "") -> str:
    """Return what outcomes come to, as a sentence says it.

    >>> average(1, "0.5"), average(2000, "0.5", " seen there")
    ('1 outcome is 0.5', '2,000 outcomes seen there average 0.5')
    """
    return f"{several(count)}{where} {'is' if round(count) == 1 else 'average'} {value}"
