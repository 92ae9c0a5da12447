"""A layout as a round reads it: a tuple, so that nothing that is written can change it, with what is known beforehand.

LLVM reads an array again after every store, and cannot unroll loops over limits or signals. With one limit and one
model of both signals those loops are gone: a round of LC-LUCB on ten rays has a seventh less to do.
"""

from collections.abc import Callable
from typing import Any

from stagewise.kernels.compile import Ints, factory, kernel
from stagewise.kernels.layout import FIELDS, FIRST_PART


@factory
def pinned_for(parts: int, single: int, alone: int = 1) -> Callable[..., Any]:
    """Return what makes a tuple of a layout with so many parts; `single`: there is one limit (see `round.Form`).

    `alone`: more parts do not follow.
    """
    at, both = FIRST_PART + FIELDS * (parts - 1), int(single > 0 and alone > 0 and parts == 1)

    @kernel
    def head(layout: Ints) -> tuple[int, ...]:
        return 1 if single else layout[0], layout[1], layout[2], layout[3], layout[4], layout[5]

    @kernel
    def last(layout: Ints) -> tuple[int, ...]:
        first, signals = (0, 2) if both else (layout[at + 1], layout[at + 2])
        return (
            layout[at], first, signals, layout[at + 3], layout[at + 4], layout[at + 5], layout[at + 6], layout[at + 7],
            layout[at + 8], layout[at + 9],
        )  # fmt: skip

    before = pinned_for(parts - 1, single, 0) if parts > 1 else head

    @kernel
    def pinned(layout: Ints) -> tuple[int, ...]:
        return before(layout) + last(layout)

    return head if parts == 0 else pinned
