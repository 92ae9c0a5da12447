"""Choose the model of each limit from the selection rows: one rate per action, by segment, or linear."""

from dataclasses import dataclass

from stagewise.launch.doctor.binary_outcomes import find_events
from stagewise.launch.doctor.checks.model_form import SELECTION_LEVEL, get_selection_level, measure_rate_dependence
from stagewise.launch.doctor.finding_messages import format_number
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.permutation_tests import find_extreme_group
from stagewise.launch.doctor.proposing.divisions import Divisions
from stagewise.launch.doctor.proposing.equivalence import EquivalenceBounds, describe_equivalence


@dataclass(frozen=True)
class LimitModel:
    """The model of a limit, why it was chosen, and among how many."""

    why: str
    by: str | None = None
    linear: bool = False
    ways: int = 1
    averaged: tuple[str, ...] = ()
    """The columns of text that the limit holds on average over, where equal rates are not shown."""


def choose_limit_model(
    profile: LogProfile, signal: int, divisions: Divisions, bounds: EquivalenceBounds, p_value: float
) -> LimitModel:
    """Return the model of a limit: linear if a number has an effect, else by segment, else one rate per action.

    Users are divided by a column whose rates are shown to differ, and also by one with few values unless its rates are
    shown to be equal: few rows cannot show a difference that exists, and the limit would then hold on average only. Of
    several such columns the one with the smallest p-value is used, since a limit has one division.
    """
    limits = len(profile.names) - 1
    ways = 1 + len(divisions.columns) + bool(profile.log.problem.context)
    equal = {
        column: describe_equivalence(profile, signal, *groups, bounds, p_value)
        for column, groups in divisions.columns.items()
    }
    different = [column for column in divisions.columns if not equal[column]]
    undecided = (*different, *divisions.unfit)
    numbers = "no number has a visible effect" if profile.log.problem.context else "there are no numbers about users"
    dependence = measure_rate_dependence(profile, signal)
    if dependence is not None and dependence.p_value <= get_selection_level(profile):
        return LimitModel(dependence.message, linear=True, ways=ways, averaged=undecided)
    differences = {column: measure_difference(profile, signal, divisions, column, limits) for column in different}
    order = sorted(different, key=lambda column: differences[column][0])
    best = next(
        (name for name in order if differences[name][0] <= 0.5 * SELECTION_LEVEL or name in divisions.few), None
    )
    others = tuple(column for column in undecided if column != best)
    if best is not None and differences[best][0] <= 0.5 * SELECTION_LEVEL:
        level, text = differences[best]
        why = f"rates differ by {best!r}: {text} (p-value {format_number(level)}, corrected)"
    elif best is not None:
        why = (
            f"rates of an action are not shown to be equal (within {format_number(bounds.margin)}) in all groups of "
            f"{best!r}, so the limit is to hold in each"
        )
    else:
        why = f"one rate per action: {numbers}"
        why += "".join(f"; {column!r}: {text}" for column, text in equal.items() if text)
    return LimitModel(why, by=best, ways=ways, averaged=others)


def measure_difference(
    profile: LogProfile, signal: int, divisions: Divisions, column: str, limits: int
) -> tuple[float, str]:
    """Return the corrected p-value of the difference between a column's groups, and a description."""
    (groups, names), rows = divisions.columns[column], profile.observed(signal)
    extreme = find_extreme_group(
        find_events(profile, signal)[rows], groups[rows], profile.cells(signal)[rows], len(names)
    )
    text = f"in {names[extreme.group]!r} it is {extreme.difference:+.2g} from elsewhere"
    return extreme.p_value * len(divisions.columns) * limits, text
