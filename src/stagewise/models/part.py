"""A model of some signals as kernels read it."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats


class Modelled(NamedTuple):
    """The whole numbers and the numbers of a part (see `kernels.layout.Part`)."""

    whole: tuple[int, ...]  # kind, first signal, signals, size, radius, anchored, reflected, detail, sharp
    numbers: Floats


def regressions(
    signals: int, reward_known: bool, costs_known: bool, apart: bool = False
) -> list[tuple[int, int, bool]]:
    """Return the signals `first` to `last` of each regression, and whether their values at x₀ are known.

    Reward and costs share one when both are known there, or both unknown; `apart`: every signal has its own.

    >>> regressions(3, True, True), regressions(3, True, False)
    ([(0, 3, True)], [(0, 1, True), (1, 3, False)])
    >>> regressions(3, True, False, apart=True)
    [(0, 1, True), (1, 2, False), (2, 3, False)]
    """
    if apart:
        return [(i, i + 1, costs_known if i else reward_known) for i in range(signals)]
    if signals == 1 or reward_known == costs_known:
        return [(0, signals, reward_known)]
    return [(0, 1, reward_known), (1, signals, costs_known)]
