"""What is read of frames, contexts, limits and sets, and cannot be: refused with what it was."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.spatial import QhullError
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise import AtLeast, Context, InvalidActions, InvalidOutcome, InvalidProblem, Limit, RelativeToSafe
from stagewise.problem.columns import columns_of, listed_names, named_column, numbers_in
from stagewise.problem.naming import ranges_of
from stagewise.problem.plain_limits import limit_from, of_kind, plain_limit
from stagewise.problem.window import clock_of


class Torn(Mapping[str, Any]):
    """A frame that has a column which cannot be read, or whose names cannot."""

    def __init__(self, names: list[str] | None) -> None:
        self.names = names

    def __getitem__(self, name: str) -> Any:
        raise RuntimeError("torn")

    def __iter__(self) -> Iterator[str]:
        if self.names is None:
            raise RuntimeError("torn")
        return iter(self.names)

    def __len__(self) -> int:
        return 1


class Arrow:
    """A frame whose own code fails."""

    __module__ = "pyarrow.lib"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise RuntimeError("torn")


READ: dict[str, tuple[Callable[[], Any], Any, list[str]]] = {
    "a column of dates": (
        lambda: numbers_in({"x": np.array(["2020-01-01"], dtype="datetime64[D]")}, "x", "reward"),
        InvalidOutcome,
        ["the column 'x'", "datetime64"],
    ),
    "a number too large": (lambda: numbers_in({"x": [10**400, 1]}, "x", "reward"), InvalidOutcome, ["no double"]),
    "a column that cannot be read": (lambda: named_column(Torn(["x"]), "x", "reward"), InvalidOutcome, ["'x'"]),
    "names that cannot be read": (lambda: listed_names(Torn(None), InvalidOutcome), InvalidOutcome, ["names"]),
    "a context in rows": (lambda: Context([[0.1, 0.2]]), InvalidActions, ["shape (1, 2)", "one list"]),
    "a segment below 0": (lambda: Context([0.1], segments=[-1]), InvalidActions, ["segments are [-1]", "from 0"]),
    "half a segment": (lambda: Context([0.1], segments=[0.5]), InvalidActions, ["segments are [0.5]"]),
    "a segment too large": (lambda: Context([0.1], segments=[2**52]), InvalidActions, ["2**52 - 1"]),
    "segments in rows": (lambda: Context([0.1], segments=[[1]]), InvalidActions, ["segments are [[1]]"]),
    "a range of one end": (lambda: ranges_of({"age": (18,)}), InvalidProblem, ["'age'", "(low, high)"]),
    "a range of text": (lambda: ranges_of({"age": "18"}), InvalidProblem, ["'age'", "(low, high)"]),
    "a reward of text": (lambda: of_kind(sw.Reward, "click", "reward"), InvalidProblem, ["reward is 'click'"]),
    "a reward without a name": (lambda: of_kind(sw.Reward, {}, "reward"), InvalidProblem, ["lacks 'name'"]),
    "a limit of text": (lambda: limit_from("2%", "opt_out"), InvalidProblem, ["'opt_out' is '2%'"]),
    "a limit of a truth": (lambda: limit_from(True, "opt_out"), InvalidProblem, ["'opt_out' is True"]),
    "a limit without a plain form": (
        lambda: plain_limit(Limit(AtLeast(RelativeToSafe(0.9)), safe=0.5)),
        InvalidProblem,
        ["from below", "give its number"],
    ),
    "a clock that stands": (lambda: clock_of(3), InvalidProblem, ["clock is 3", "time.time"]),
}


@pytest.mark.parametrize(("call", "kind", "parts"), READ.values(), ids=READ)
def test_what_cannot_be_read_is_refused_with_what_it_was(call: Callable[[], Any], kind: Any, parts: list[str]) -> None:
    refuses(call, kind, *parts)


def test_a_frame_whose_own_code_fails() -> None:
    refuses(lambda: columns_of(Arrow()), InvalidOutcome, "cannot be read", "torn")


@pytest.mark.parametrize(
    ("made", "part"), [("ConvexHull", "4 vertices"), ("HalfspaceIntersection", "half-spaces")], ids=["points", "rows"]
)
def test_a_polytope_that_cannot_be_found(made: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise QhullError("QH6154 initial simplex is flat\nmore of it")

    square = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    rows, ends = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, 1.0, 1.0, 1.0]
    make = {
        "ConvexHull": lambda: sw.Polytope(square),
        "HalfspaceIntersection": lambda: sw.Polytope(A=rows, b=ends),
    }
    make[made]()
    monkeypatch.setattr(f"scipy.spatial.{made}", fails)
    refuses(make[made], InvalidActions, part, "QH6154 initial simplex is flat")
