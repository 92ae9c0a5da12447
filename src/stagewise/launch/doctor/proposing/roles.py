"""Which column is what: as said, else guessed by its name and its values, and then that is said too."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.kernels.compile import Floats
from stagewise.launch.doctor.checks.duplicates import IDS
from stagewise.launch.doctor.proposing.entries import nearly_numbers, numbers_of, outcomes_of
from stagewise.launch.log import TIMES, holds_times, text_of
from stagewise.problem.checks import entries_of, is_listing, mapping_of, number
from stagewise.problem.columns import near
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.naming import listing
from stagewise.problem.words import shown

ACTIONS = ("action", "arm", "template", "variant", "treatment", "message", "offer", "choice")
REWARDS = ("click", "clicked", "reward", "conversion", "converted", "purchase", "bought", "success", "revenue")
COSTS = (
    "opt_out", "optout", "unsubscribe", "unsubscribed", "complaint", "complained", "cost", "spam", "churn", "refund",
    "dislike", "bounce", "harm", "adverse",
)  # fmt: skip
SAFES = ("today", "control", "nothing", "none", "default", "baseline", "safe", "current", "holdout")
ASIDE = ("propensity", *TIMES)  # columns of a log that are none of a user's
MOST_ACTIONS = 1_000
LEAST_ROWS = 100  # of a log that anything is proposed from


@dataclass
class Roles:
    """What every column is for."""

    action: str
    actions: list[str]
    safe: str
    reward: str
    limits: dict[str, float | None]
    outcomes: dict[str, Floats]
    numbers: dict[str, Floats] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    aside: dict[str, str] = field(default_factory=dict)
    guessed: list[str] = field(default_factory=list)


def roles_of(
    arrays: Mapping[Any, npt.NDArray[Any]], action: Any, reward: Any, limits: Any, safe: Any, aside: Sequence[Any] = ()
) -> Roles:
    """Return what every column is for; those `aside` are said to be times or chances."""
    named = {name: array for name, array in arrays.items() if isinstance(name, str)}
    guessed: list[str] = []
    doing = one_of(named, action, ACTIONS, "action", guessed)
    wanted = one_of(named, reward, REWARDS, "reward", guessed)
    costs = limits_of(named, limits, guessed)
    twice = [name for name in costs if name in (doing, wanted)] + ([doing] if doing == wanted else [])
    if twice:
        raise InvalidOutcome(f"the column {shown(twice[0])} is to be two things; action, reward and limits are apart")
    rows = named[doing].size
    if rows < LEAST_ROWS:
        raise InvalidOutcome(
            f"the log has {rows:,} row{'s' * (rows != 1)}; a proposal needs {LEAST_ROWS} at least, since fewer show "
            "nothing of rates: declare the problem yourself, and learn from these"
        )
    done = Counter(text_of(value) for value in named[doing].tolist())
    actions = sorted((name for name in done if name is not None), key=lambda name: (-done[name], name))
    most = min(MOST_ACTIONS, rows // 2)
    if not 2 <= len(actions) <= most:
        several = f"{len(actions):,} actions in {rows:,} rows, where {most:,} are the most for a proposal"
        one = f"the one action {shown(actions[0])}, where there must be another to choose" if actions else "no action"
        raise InvalidOutcome(
            f"the column {shown(doing)} names {several if len(actions) > 1 else one}; give action='...', or --action, "
            "where another column says what was done"
        )
    home = safe_of(actions, safe, guessed)
    outcomes = {name: outcomes_of(named[name], name) for name in (wanted, *costs)}
    ordered = [home, *(name for name in actions if name != home)]
    told = Roles(doing, ordered, home, wanted, costs, outcomes, guessed=guessed)
    for name, array in named.items():
        if name not in (doing, wanted, *costs):
            place_column(told, name, array, name in aside)
    for name in [name for name, values in told.numbers.items() if follows(values, named[doing])]:
        told.numbers.pop(name)
        told.aside[name] = "it is the same in all rows of an action, and so says what was done, not for whom"
    return told


def follows(values: Floats, done: npt.NDArray[Any]) -> bool:
    """Say whether a number is one and the same in all rows of every action: then it is about the action.

    >>> done = np.array(["a", "a", "b"])
    >>> follows(np.array([0.5, 0.5, 0.2]), done), follows(np.array([0.5, 0.2, 0.2]), done)
    (True, False)
    """
    _, place = np.unique([str(value) for value in done.tolist()], return_inverse=True)
    first = np.full(int(place.max()) + 1, np.nan)
    first[place[::-1]] = values[::-1]
    return bool(np.all((values == first[place]) | ~np.isfinite(values)))


def one_of(named: Mapping[str, Any], given: Any, usual: Sequence[str], what: str, guessed: list[str]) -> str:
    """Return a column that was named, or one that is called as such columns are."""
    if given is not None or not usual:
        if not isinstance(given, str) or given not in named:
            raise InvalidOutcome(
                f"{what} is {shown(given)}, which is no column of the log{near(given, list(named))}; its columns are "
                f"{shown(list(named))}"
            )
        return given
    found = next((name for word in usual for name in named if name.lower() == word), None)
    if found is None:
        raise InvalidOutcome(
            f"which column is the {what}? None is called as such columns are; its columns are {shown(list(named))}; "
            f"give {what}='...', or --{what} ..."
        )
    guessed.append(f"{what} {found!r}")
    return found


def limits_of(named: Mapping[str, Any], given: Any, guessed: list[str]) -> dict[str, float | None]:
    """Return the columns that have limits, with the limits that were given."""
    if given is None:
        found: dict[str, float | None] = {name: None for name in named if name.lower() in COSTS}
        if not found:
            raise InvalidOutcome(
                "which columns have limits? None is called as costs are; its columns are "
                f"{shown(list(named))}; give limits={{'opt_out': 0.02}}, or --limit opt_out=0.02"
            )
        guessed.append(f"limits on {listing(found)}")
        return found
    if isinstance(given, str) or not (isinstance(given, Mapping) or is_listing(given)):
        raise InvalidOutcome(f"limits is {shown(given)}; it must be a list of columns, or a mapping to limits")
    told: list[tuple[Any, Any]] = (
        list(mapping_of(given, "limits", InvalidOutcome).items())
        if isinstance(given, Mapping)
        else [(name, None) for name in entries_of(given, "limits", InvalidOutcome)]
    )
    if not told:
        raise InvalidOutcome("limits are empty; a problem needs one, since without any nothing is to be kept")
    return {
        name: None if value is None else number(value, f"the limit of {name!r}")
        for name, value in [(one_of(named, name, (), "a limit", guessed), value) for name, value in told]
    }


def safe_of(actions: list[str], given: Any, guessed: list[str]) -> str:
    """Return the safe action: as said, or called as such actions are; what is most frequent may be anything."""
    if given is not None:
        if not isinstance(given, str) or given not in actions:
            raise InvalidOutcome(f"safe is {shown(given)}; it must be an action of the log: {listing(actions)}")
        return given
    found = next((name for word in SAFES for name in actions if name.lower() == word), None)
    if found is None:
        raise InvalidOutcome(
            f"which action is safe? None is called as such actions are ({', '.join(SAFES[:4])}, ...); the log has "
            f"{listing(actions)}; give safe='...', or --safe ..., the one that is done today"
        )
    guessed.append(f"safe action {found!r}")
    return found


def place_column(told: Roles, name: str, array: npt.NDArray[Any], aside: bool) -> None:
    """Say what a column that is neither action nor outcome is for."""
    if (
        aside
        or holds_times(array)
        or name in ASIDE
        or name.startswith("probability.")
        or IDS.fullmatch(name)
        or name.lower().endswith("_id")
    ):
        told.aside[name] = "it is a time, a chance or an id"
        return
    values = numbers_of(array)
    if values is None and (words := nearly_numbers(array.tolist())):
        told.aside[name] = words
    elif values is None:
        told.texts.append(name)
    elif not name.strip() or not name.isprintable() or len(name) > 100:
        told.aside[name] = "a problem cannot have such a name"
    elif np.unique(values[np.isfinite(values)]).size < 2:
        told.aside[name] = "it has one value in all rows"
    else:
        told.numbers[name] = values
