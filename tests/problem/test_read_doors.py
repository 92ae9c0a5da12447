"""What is read of frames, contexts, limits and sets, and cannot be: refused with what it was."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.spatial import QhullError
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise import AtLeast, ContextVector, InvalidActions, InvalidOutcome, InvalidProblem, Limit, TimesSafe
from stagewise.problem.columns import get_column, get_numeric_column, list_column_names, read_columns
from stagewise.problem.context_columns import parse_context
from stagewise.problem.errors import ErrorCode
from stagewise.problem.signals import encode_limit, parse_limit, parse_signal
from stagewise.problem.timing import check_clock


class Torn(Mapping[str, Any]):
    """A frame that has a column which cannot be read, or whose names cannot."""

    def __init__(self, names: list[object] | None) -> None:
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


READ: dict[str, tuple[Callable[[], Any], Any, list[object]]] = {
    "a column of dates": (
        lambda: get_numeric_column({"x": np.array(["2020-01-01"], dtype="datetime64[D]")}, "x", "reward"),
        InvalidOutcome,
        [ErrorCode.COLUMN_WRONG_TYPE],
    ),
    "a number too large": (
        lambda: get_numeric_column({"x": [10**400, 1]}, "x", "reward"),
        InvalidOutcome,
        [ErrorCode.OUT_OF_RANGE],
    ),
    "a column that cannot be read": (
        lambda: get_column(Torn(["x"]), "x", "reward"),
        InvalidOutcome,
        [ErrorCode.COLUMN_WRONG_TYPE],
    ),
    "names that cannot be read": (
        lambda: list_column_names(Torn(None), InvalidOutcome),
        InvalidOutcome,
        [ErrorCode.WRONG_TYPE],
    ),
    "a context in rows": (lambda: ContextVector([[0.1, 0.2]]), InvalidActions, [ErrorCode.WRONG_SHAPE]),
    "a segment below 0": (lambda: ContextVector([0.1], segments=[-1]), InvalidActions, [ErrorCode.WRONG_TYPE]),
    "half a segment": (lambda: ContextVector([0.1], segments=[0.5]), InvalidActions, [ErrorCode.WRONG_TYPE]),
    "a segment too large": (lambda: ContextVector([0.1], segments=[2**52]), InvalidActions, [ErrorCode.WRONG_TYPE]),
    "segments in rows": (lambda: ContextVector([0.1], segments=[[1]]), InvalidActions, [ErrorCode.WRONG_TYPE]),
    "a range of one end": (lambda: parse_context({"age": (18,)}), InvalidProblem, [ErrorCode.WRONG_TYPE]),
    "a range of text": (lambda: parse_context({"age": "18"}), InvalidProblem, [ErrorCode.WRONG_TYPE]),
    "a reward of text": (lambda: parse_signal(sw.Reward, "click", "reward"), InvalidProblem, [ErrorCode.WRONG_TYPE]),
    "a reward without a name": (
        lambda: parse_signal(sw.Reward, {}, "reward"),
        InvalidProblem,
        [ErrorCode.MISSING_VALUE],
    ),
    "a limit of text": (lambda: parse_limit("2%", "opt_out"), InvalidProblem, [ErrorCode.WRONG_TYPE]),
    "a limit of a truth": (lambda: parse_limit(True, "opt_out"), InvalidProblem, [ErrorCode.WRONG_TYPE]),
    "a limit that no file can hold": (
        lambda: encode_limit(Limit(AtLeast(TimesSafe(0.9)), safe_bound=0.5)),
        InvalidProblem,
        [ErrorCode.NOT_SERIALIZABLE],
    ),
    "a clock that stands": (lambda: check_clock(3), InvalidProblem, [ErrorCode.WRONG_TYPE]),
}


@pytest.mark.parametrize(("call", "kind", "parts"), READ.values(), ids=READ)
def test_what_cannot_be_read_is_refused_with_what_it_was(
    call: Callable[[], Any], kind: Any, parts: list[object]
) -> None:
    refuses(call, kind, *parts)


def test_a_frame_whose_own_code_fails() -> None:
    refuses(lambda: read_columns(Arrow()), InvalidOutcome, ErrorCode.WRONG_TYPE)


@pytest.mark.parametrize("function", ["ConvexHull", "HalfspaceIntersection"], ids=["points", "rows"])
def test_a_polytope_that_cannot_be_found(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise QhullError("QH6154 initial simplex is flat\nmore of it")

    square = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    rows, ends = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, 1.0, 1.0, 1.0]
    make = {
        "ConvexHull": lambda: sw.PolytopeSet(square),
        "HalfspaceIntersection": lambda: sw.PolytopeSet(A=rows, b=ends),
    }
    make[function]()
    monkeypatch.setattr(f"scipy.spatial.{function}", fails)
    refuses(make[function], InvalidActions, ErrorCode.INVALID_ACTION_SET, "QH6154")
