"""A model of some signals as kernels read it."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats


class Modelled(NamedTuple):
    """The whole numbers and the numbers of a part (see `kernels.layout.Part`)."""

    whole: tuple[int, ...]  # kind, first signal, signals, size, radius, anchored, reflected, similarity
    numbers: Floats
