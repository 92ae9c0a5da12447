"""A layout as a tuple with known constants, for the compiled round.

LLVM re-reads an array after every store and cannot unroll loops over limits or signals. With one limit and one model of
both signals these loops disappear: a round of LC-LUCB on ten rays does a seventh less work.
"""

from collections.abc import Callable
from typing import Any

from stagewise.kernels.compile import Ints, factory, kernel
from stagewise.kernels.layout import FIRST_MODEL_BLOCK, MODEL_BLOCK_FIELDS


@factory
def build_layout_reader(block_count: int, single: int, is_last: int = 1) -> Callable[..., Any]:
    """Return a kernel that makes a tuple of a layout with this many blocks; `single`: there is one limit.

    `is_last`: no more blocks follow.
    """
    at, both = (
        FIRST_MODEL_BLOCK + MODEL_BLOCK_FIELDS * (block_count - 1),
        int(single > 0 and is_last > 0 and block_count == 1),
    )

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

    before = build_layout_reader(block_count - 1, single, 0) if block_count > 1 else head

    @kernel
    def read_layout(layout: Ints) -> tuple[int, ...]:
        return before(layout) + last(layout)

    return head if block_count == 0 else read_layout
