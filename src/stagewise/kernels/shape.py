"""What kind of policy it is: the whole numbers and switches that all kernels on features read."""

from typing import NamedTuple

from stagewise.kernels.compile import Ints, kernel


class Shape(NamedTuple):
    """The whole numbers and switches of a linear policy; they cross as a plain array, which is cheaper."""

    dimension: int  # d
    constraints: int  # m
    radius: int  # MIXTURE, LOGDET or PAPER
    origin: bool  # the safe action is the zero vector, or there is none
    reward_known: bool  # at the safe action
    cost_known: bool
    directional: bool
    inflated: bool
    offers_safe: bool
    returns: bool


@kernel
def named_shape(flags: Ints) -> Shape:
    return Shape(
        flags[0],
        flags[1],
        flags[2],
        flags[3] != 0,
        flags[4] != 0,
        flags[5] != 0,
        flags[6] != 0,
        flags[7] != 0,
        flags[8] != 0,
        flags[9] != 0,
    )


@kernel
def together(shape: Shape) -> bool:
    """Say whether one regression serves the reward and the costs."""
    return shape.constraints == 0 or shape.reward_known == shape.cost_known
