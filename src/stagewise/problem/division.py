"""Divisions of users: by the segments of one or several columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagewise.problem.context import check_segment_name, hash_segment


@dataclass(frozen=True)
class Division:
    """A division of users. Its key is one number, by which the models of its signals find a user's rates."""

    columns: tuple[str, ...]
    """The columns of the context that it reads."""

    @property
    def name(self) -> str:
        """The name of the division.

        >>> Division(("country", "plan")).name
        'country and plan'
        """
        return " and ".join(self.columns)

    def encode(self, values: Mapping[str, Any]) -> int:
        """Return the key of a user's segment from a context by name.

        >>> Division(("country",)).encode({"country": "NZ"}) == hash_segment("NZ")
        True
        """
        return self.encode_names([check_segment_name(values[column], column) for column in self.columns])

    def encode_names(self, names: Sequence[str]) -> int:
        """Return the key of the names of a segment, one for each column."""
        return hash_segment(join_segments(names))

    def encode_columns(self, columns: Mapping[str, Sequence[Any]]) -> list[int]:
        """Return the keys of many users, from columns of checked names."""
        rows = list(zip(*(columns[column] for column in self.columns), strict=True))
        keys = {row: self.encode_names(row) for row in set(rows)}
        return [keys[row] for row in rows]


def join_segments(names: Sequence[str]) -> str:
    r"""Return the name of a segment of several columns; a comma or a backslash in a name is escaped.

    >>> join_segments(["NZ"]), join_segments(["NZ", "pro"]), join_segments(["a, b", "c"])
    ('NZ', 'NZ, pro', 'a\\, b, c')
    """
    if len(names) == 1:
        return names[0]
    return ", ".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in names)
