"""Text for error messages: always one short line."""

import reprlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

LONGEST_VALUE = 120  # characters of a value in a message
LONGEST_PATH = 160  # characters of a path in a message
LONGEST = 399  # characters of a message


def fit_line(text: str, longest: int) -> str:
    """Return a text as one line of at most `longest` characters; its middle is cut.

    >>> fit_line(f"two{chr(10)}lines", 20)
    'two lines'
    >>> fit_line("a" * 50 + "b", 20)
    'aaaaaaaaaa ... aaaab'
    """
    line = " ".join(part.strip() for part in text.splitlines())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    if len(line) <= longest:
        return line
    end = (longest - 5) // 3
    return f"{line[: longest - 5 - end]} ... {line[-end:]}"


def make_sentence(template: str, details: Mapping[str, Any]) -> str:
    """Return the sentence of a template and its data.

    >>> make_sentence("{name} is {value:g}", {"name": "delta", "value": 2.0})
    'delta is 2'
    """
    return template.format_map(details) if details else template.replace("{{", "{").replace("}}", "}")


class ShortRepr(reprlib.Repr):
    """`reprlib.Repr` that shows NumPy numbers as Python's."""

    def repr1(self, x: Any, level: int) -> str:
        """Return a value as text."""
        np: Any = sys.modules.get("numpy")  # without NumPy loaded there are no NumPy numbers
        is_scalar = np is not None and isinstance(x, np.generic) and not isinstance(x, np.void)
        return super().repr1(x.item() if is_scalar else x, level)


SHORT_REPR = ShortRepr()


def safe_repr(value: Any) -> str:
    """Return a short one-line repr that never fails.

    >>> import numpy as np
    >>> safe_repr(list(range(100))), safe_repr([np.float32(0.5), np.True_])
    ('[0, 1, 2, 3, 4, 5, ...]', '[0.5, True]')
    """
    try:
        # a class is often given instead of an instance; its full name helps
        text = repr(value) if isinstance(value, type) else SHORT_REPR.repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = f"a {type(value).__name__} with very many digits"
    except Exception:
        text = f"a {type(value).__name__} that cannot be shown"
    return fit_line(text, LONGEST_VALUE)


def align_columns(rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Return the rows of a table as lines with aligned columns, those in `right` to the right.

    >>> align_columns([("action", "share"), ("a", "5.0%")], right=[1])
    ['action  share', 'a        5.0%']
    """
    table, aligned = list(rows), set(right)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    sides = [">" if index in aligned else "<" for index in range(len(widths))]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in table
    ]


def join_names(names: Iterable[Any]) -> str:
    """Return names as text, at most eight of them."""
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "") if names else "nothing"


def format_path(path: Path) -> str:
    """Return a path for a message: in one line, and only the end of a long one.

    >>> format_path(Path("agent.json"))
    'agent.json'
    """
    text = str(path) if str(path).isprintable() else repr(str(path))
    return text if len(text) <= LONGEST_PATH else f"…{text[-LONGEST_PATH:]}"


def suggest_name(name: Any, names: Sequence[str]) -> str:
    """Return "; did you mean ...?" for the closest name, or an empty text.

    >>> suggest_name("optout", ["click", "opt_out"]), suggest_name("x", ["click"])
    ("; did you mean 'opt_out'?", '')
    >>> suggest_name("lc-lucb", ["LCLUCB", "LinUCB"])
    "; did you mean 'LCLUCB'?"
    """
    if not isinstance(name, str):
        return ""
    normalized = {normalize_name(other): other for other in reversed(names)}
    matches = get_close_matches(name, names, 1) or [
        normalized[match] for match in get_close_matches(normalize_name(name), list(normalized), 1)
    ]
    return f"; did you mean {matches[0]!r}?" if matches else ""


def normalize_name(name: str) -> str:
    """Return a name without case and punctuation."""
    return "".join(c for c in name.casefold() if c.isalnum())


def suggest_percent(value: float) -> str:
    """Return a hint where a number looks like a percentage.

    >>> suggest_percent(2.0), suggest_percent(0.5)
    ('; 2 % is 0.02', '')
    """
    return f"; {value:g} % is {value / 100.0:g}" if 1.0 <= value <= 100.0 else ""


def format_count(count: float, word: str = "outcome") -> str:
    """Return a count with its noun.

    >>> format_count(1.0), format_count(1200.0)
    ('1 outcome', '1,200 outcomes')
    """
    return f"{count:,.0f} {word}{'s' * (round(count) != 1)}"


def format_number(value: float) -> str:
    """Return a number in four digits, or as a whole number from 1,000; rounding noise is 0.

    >>> format_number(0.123456), format_number(12345.6), format_number(1e-16)
    ('0.1235', '12,346', '0')
    """
    if abs(value) < 1e-9:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"


def format_average(count: float, value: str, where: str = "") -> str:
    """Return the average of outcomes as text.

    >>> format_average(1, "0.5"), format_average(2000, "0.5", " seen there")
    ('1 outcome is 0.5', '2,000 outcomes seen there average 0.5')
    """
    return f"{format_count(count)}{where} {'is' if round(count) == 1 else 'average'} {value}"
