"""A processor in the place of a GPU: the text of a device's loop, one thread after the other, as plain Python."""

import math
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import numpy as np

from stagewise.engine.compile import as_python
from stagewise.engine.random import fill_normal
from stagewise.simulation.gpu import lockstep


class Copied(np.ndarray):
    """An array on a device."""

    def copy_to_host(self) -> Any:
        return np.array(self)


class Device:
    """What the host's side asks of CUDA."""

    @staticmethod
    def to_device(values: Any) -> Any:
        assert values.size, "a device array cannot be empty"
        assert values.flags.c_contiguous
        return np.array(values).view(Copied)


class Thread:
    """What a kernel asks of CUDA; its own memory holds what others left there, which no run may rest on."""

    def __init__(self, place: int) -> None:
        self.place, self.local = place, self

    def grid(self, axes: int) -> int:
        return self.place

    def array(self, shape: Any, kind: Any) -> Any:
        return np.full(shape, math.nan) if str(kind) == "float64" else np.full(shape, 2**40, dtype=np.int64)


FILL_NORMAL = as_python(fill_normal)

LOCKSTEP: dict[str, Callable[..., Any]] = {
    **{name: as_python(getattr(lockstep, name)) for name in ("larger", "lesser", "normals")},
    "root": lambda x: math.sqrt(abs(x)),
    "ratio": lambda numerator, denominator: numerator / denominator,
    "inverse_root": lambda x: 1.0 / math.sqrt(x),
    "fill_normals": lambda out, count, seed, run, t, stream, tables: FILL_NORMAL(out[:count], seed, run, t, stream),
}


def spread(kernel: Any, runs: int) -> Callable[..., None]:
    """Return a kernel that plays so many runs, one after the other."""
    plain = kernel.py_func

    def launched(*arguments: Any) -> None:
        told = [np.asarray(each) if isinstance(each, np.ndarray) else each for each in arguments]
        for place in range(runs):
            scope = {**plain.__globals__, **LOCKSTEP, "cuda": Thread(place)} if plain.__closure__ is None else None
            held = zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True)
            cells = tuple(CellType(Thread(place)) if name == "cuda" else cell for name, cell in held)
            with np.errstate(over="ignore"):  # of a random word's product, as on a device
                FunctionType(plain.__code__, scope or plain.__globals__, "play", None, cells or None)(*told)

    return launched
