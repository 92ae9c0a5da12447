"""What a round shows: beliefs about candidates and what a rule makes of them, in one flat array, named again inside."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.look import View
from stagewise.kernels.shape import Shape, together

NEWS = 1.0  # in a verdict: the candidates are not the followed ones, which `change_followed` has to be told


class Sight(NamedTuple):
    """What is believed of M candidates and of the safe action, and room for what a rule makes of it."""

    rewards: Floats  # (M,) estimates
    costs: Floats  # (m, M) estimates
    reward_view: View  # the same arrays, as the reward's regression fills them, and the costs' where it serves both
    cost_view: View  # and as the costs' own does
    reward_widths: Floats  # (M,) ‖x‖ in the reward's norm
    cost_widths: Floats  # (M,)
    reward_crosses: Floats  # (M,) <x, x₀> in that norm; untouched where the safe reward is known
    cost_crosses: Floats  # (M,)
    start: Floats  # (m + 3,) at the safe action: reward, costs, reward width, cost width
    radii: Floats  # (1 + m,) of the reward and of every cost
    hoped: Floats  # (M,) by the rule: the optimistic reward,
    steps: Floats  # (M,) how far the safe step goes,
    reaches: Floats  # (M,) and the plausible one
    verdict: Floats  # (4 + m,) of the decision: step, hoped reward, pessimistic costs; the safe action's hope; NEWS
    action: Floats  # (d,) and the action played


def sheet_size(d: int, m: int, count: int) -> int:
    """Return the length of the array of results for `count` candidates."""
    return (8 + m) * count + (m + 3) + (1 + m) + (4 + m) + d


@kernel
def named_sight(shape: Shape, sheet: Floats, count: int) -> Sight:
    """Name the results: estimates | widths | crosses | hoped | steps | reaches | start | radii | verdict | action."""
    m = shape.constraints
    rows = sheet[: (8 + m) * count].reshape(8 + m, count)
    widths = 1 + m
    start = rows.size
    radii = start + m + 3
    verdict = radii + 1 + m
    action = verdict + 4 + m
    last = widths if together(shape) else 1
    cost_widths, cost_crosses = (0, 2) if together(shape) else (1, 3)
    estimates, costs = sheet[: last * count].reshape(last, count), sheet[count : widths * count].reshape(m, count)
    return Sight(
        rows[0],
        costs,
        View(estimates, rows[widths], rows[widths + 2], sheet[start : start + last], sheet[radii : radii + last]),
        View(costs, rows[widths + 1], rows[widths + 3], sheet[start + 1 : start + widths], sheet[radii + 1 : verdict]),
        rows[widths],
        rows[widths + cost_widths],
        rows[widths + 2],
        rows[widths + cost_crosses],
        sheet[start:radii],
        sheet[radii:verdict],
        rows[widths + 4],
        rows[widths + 5],
        rows[widths + 6],
        sheet[verdict:action],
        sheet[action : action + shape.dimension],
    )
