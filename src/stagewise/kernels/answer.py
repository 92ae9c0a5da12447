"""What a decision comes to, in one array: step, hoped reward, the safe action's, unfollowed | costs | mixture | action.

A mixture is m + 2 shares and the places they belong to; −1 is the safe action.
"""

from typing import NamedTuple

from stagewise.kernels.compile import WHOLE, Floats, Ints, kernel
from stagewise.kernels.layout import FEATURES, HOME, LIMITS

STEP, HOPE, SAFE_HOPE, UNFOLLOWED, FIRST_COST = 0, 1, 2, 3, 4


@kernel
def answer_size(m: int, d: int) -> int:
    """Return the length of an answer."""
    return FIRST_COST + m + 2 * (m + 2) + d


@kernel
def costs_in(answer: Floats, m: int) -> Floats:
    """Return the pessimistic costs (m,)."""
    return answer[FIRST_COST : FIRST_COST + m]


@kernel
def action_in(answer: Floats, d: int) -> Floats:
    """Return what is played (d,)."""
    return answer[answer.size - d :]


class Written(NamedTuple):
    """The parts of an answer that are arrays, as views of it."""

    shares: Floats  # (m + 2,) of the mixture,
    places: Ints  # (m + 2,) and which candidates they belong to
    action: Floats  # (d,) what is played


@kernel
def written_in(layout: Ints, answer: Floats) -> Written:
    """Return the mixture and the action in an answer, as views of it."""
    m = layout[LIMITS]
    shares, places = FIRST_COST + m, FIRST_COST + 2 * m + 2
    return Written(
        answer[shares:places], answer[places : places + m + 2].view(WHOLE), answer[answer.size - layout[FEATURES] :]
    )


@kernel
def fill_odds_of(layout: Ints, answer: Floats, odds: Floats) -> None:
    """Write the probability of every candidate, and last that of the safe action where it stands beside them."""
    written, home, last = written_in(layout, answer), layout[HOME], odds.size - 1
    for i in range(odds.size):
        odds[i] = 0.0
    for k in range(written.shares.size):
        place = written.places[k]
        if place < 0:
            place = home if home >= 0 else last
        odds[place] += written.shares[k]
