"""Sentences of findings and notes: templates whose fields are data, or phrases made from the data."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from string import Formatter
from types import SimpleNamespace
from typing import Any

from stagewise.problem.formatting import format_count, join_names

Phrase = str | Callable[[Any], str]


def format_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def choose(first: Any, text: str = "more", otherwise: str = "less") -> str:
    return text if first else otherwise


class MessageFormatter(Formatter):
    """Formats templates: a field is a detail, or else a phrase, which is a template or a function of the details.

    {x:number} is a short number, {x:names} a list of names, and {x:rows} a number of rows.
    """

    def __init__(self, phrases: Mapping[str, Phrase]) -> None:
        self.phrases = phrases

    def get_value(self, key: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Return a detail, or the text of a phrase."""
        if key in kwargs:
            return kwargs[key]
        phrase = self.phrases[key]
        return self.make_text(phrase, kwargs) if isinstance(phrase, str) else phrase(SimpleNamespace(**kwargs))

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "rows":
            return format_count(value, "row")
        if format_spec == "number":
            return format_number(value)
        return join_names(value) if format_spec == "names" else format(value, format_spec)

    def make_text(self, template: str, details: Mapping[str, Any]) -> str:
        return self.vformat(template, (), details)


def build_codes(name: str, codes: Iterable[str], module: str) -> Any:
    """Return the enumeration of the codes of a table: `NAME` is "name"."""
    return StrEnum(name, {code.upper(): code for code in codes}, module=module)


def read_lines(table: str) -> list[str]:
    """Return the lines of a table; indented lines continue the one above."""
    return table.strip().replace("\n    ", " ").split("\n")
