"""A catalogue of values that nobody should give, and that somebody will: each is asked of every argument there is."""

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import stagewise as sw


class Mute:
    """Whatever is asked of it ends in an error of two lines."""

    def _refuse(self, *given: Any, **more: Any) -> Any:
        raise RuntimeError("two\nlines")

    __repr__ = __str__ = __len__ = __float__ = __index__ = __array__ = __fspath__ = _refuse
    __bool__ = __iter__ = __getitem__ = __call__ = _refuse


class Closed:
    """It does not even say which attributes it has."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("closed")


class Torn(Mapping[str, float]):
    """A mapping whose entries cannot be read."""

    def __getitem__(self, name: str) -> float:
        raise RuntimeError("torn")

    def __iter__(self) -> Iterator[str]:
        return iter(["cost"])

    def __len__(self) -> int:
        return 1


class Liar:
    """It promises an array and a length, and the two differ."""

    ndim = 1

    def __len__(self) -> int:
        return 3

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros((2, 2))


def itself() -> list[Any]:
    """Return a list that holds itself."""
    listing: list[Any] = []
    listing.append(listing)
    return listing


def nested(depth: int) -> list[Any]:
    """Return lists in lists."""
    listing: list[Any] = []
    for _ in range(depth):
        listing = [listing]
    return listing


def objects(*entries: Any) -> Any:
    """Return an array of objects, as it is."""
    array = np.empty(len(entries), dtype=object)
    for index, entry in enumerate(entries):
        array[index] = entry
    return array


def failing(*given: Any) -> Any:
    """Be a function that fails."""
    raise RuntimeError("a function\nthat fails")


HOSTILE: dict[str, Any] = {
    "nothing": None,
    "true": True,
    "false of numpy": np.False_,
    "zero": 0,
    "one": 1,
    "minus one": -1,
    "minus zero": -0.0,
    "a half": 0.5,
    "nan": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "the smallest number": 5e-324,
    "a tiny number": 1e-310,
    "a large number": 1e308,
    "beyond squares": 1e160,
    "2**31": 2**31,
    "2**63": 2**63,
    "2**64": 2**64,
    "10**400": 10**400,
    "-10**400": -(10**400),
    "10**5000": 10**5000,
    "complex": 1j,
    "a fraction": Fraction(1, 3),
    "a huge fraction": Fraction(10**400, 3),
    "a decimal": Decimal("0.25"),
    "a decimal nan": Decimal("NaN"),
    "a signalling nan": Decimal("sNaN"),
    "int64": np.int64(2),
    "uint64": np.uint64(2**64 - 1),
    "float32": np.float32(0.5),
    "float16 infinity": np.float16(np.inf),
    "a time": np.datetime64("2020-01-01"),
    "a time span": np.timedelta64(3),
    "0-d whole": np.array(2),
    "0-d number": np.array(0.5),
    "0-d truth": np.array(True),
    "0-d text": np.array("joint"),
    "0-d object": np.array(None, dtype=object),
    "empty array": np.empty(0),
    "no rows": np.empty((0, 2)),
    "no columns": np.empty((2, 0)),
    "vector": np.array([0.5, 0.25]),
    "whole vector": np.array([0, 1]),
    "truths": np.array([True, False]),
    "texts": np.array(["a", "b"]),
    "table": np.eye(2),
    "cube": np.zeros((2, 2, 2)),
    "nan inside": np.array([[0.1, np.nan]]),
    "complex inside": np.array([[1j, 0.0]]),
    "fields": np.zeros(2, dtype=[("a", float), ("b", int)]),
    "times": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "objects": objects(None, "a"),
    "mute objects": objects(Mute(), Mute()),
    "read-only": np.broadcast_to(np.float64(0.1), (3, 2)),
    "backwards": np.arange(6.0).reshape(3, 2)[::-1, ::-1],
    "big endian": np.array([[0.1, 0.2]], dtype=">f8"),
    "text": "joint",
    "empty text": "",
    "other text": "no such choice",
    "two lines": "two\nlines\r\nand \u2028 more\x1b[31m",
    "long text": "x" * 10_000,
    "zero character": "a\0b",
    "half a pair": "a\ud800b",
    "here": ".",
    "below a file": "file/below",
    "a file": "file",
    "long name": "y" * 300,
    "long path": "z/" * 5000,
    "bytes": b"bytes",
    "a path": Path("no-such-folder") / "no-such-file",
    "empty list": [],
    "empty tuple": (),
    "empty mapping": {},
    "list": [0.5],
    "list of text": ["a", "b"],
    "list of lists": [[0.1, 0.2], [0.3, 0.4]],
    "ragged": [[0.1], [0.2, 0.3]],
    "huge inside": [10**400, 1],
    "nothing inside": [None, None],
    "long list": [0.1] * 1000,
    "a set": {1, 2},
    "a mapping": {"cost": 0.1},
    "other names": {"two\nlines": 0.1, "x" * 1000: 0.2},
    "numbers for names": {1: 0.1},
    "mixed names": {1: 0.1, "a": 0.2},
    "nested mapping": {"cost": {"cost": {"cost": 1.0}}},
    "itself": itself(),
    "deep": nested(50_000),
    "70 deep": nested(70),
    "a generator": (x for x in [1, 2, 3]),
    "a range": range(3),
    "a function": failing,
    "list of functions": [failing, failing],
    "a class": sw.OPB,
    "a module": math,
    "an object": object(),
    "not implemented": NotImplemented,
    "ellipsis": ...,
    "mute": Mute(),
    "closed": Closed(),
    "torn": Torn(),
    "a liar": Liar(),
    "list of mute": [Mute(), Mute()],
    "mapping of mute": {"cost": Mute()},
    "arms": sw.ArmSet(3),
    "rays": sw.RaySet([[1.0, 0.0], [0.0, 1.0]]),
    "a ball": sw.BallSet(1.0),
    "a safe arm": sw.SafeAction(arm=0, reward=0.1, cost=0.0),
    "safe features": sw.SafeAction(features=[0.0, 0.0]),
    "at least": sw.AtLeast(0.1),
    "relative": sw.TimesSafe(1.5),
    "relative to nothing": sw.TimesSafe(Mute()),  # type: ignore[arg-type]
    "at least a mapping": sw.AtLeast({"a": 1}),  # type: ignore[arg-type]
    "a draw": sw.RandomKey(1, 2, 3),
    "an outcome": sw.Outcome(0.1, 0.1),
    "a generator of numbers": np.random.default_rng(1),
}
