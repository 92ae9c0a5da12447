"""Assign a role to every column of a log: as given, or guessed by name and values; guesses are reported."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Floats
from stagewise.launch.decision_log import TIME_COLUMNS, holds_times, to_text
from stagewise.launch.doctor.checks.duplicates import ID_PATTERN
from stagewise.launch.doctor.proposing.numeric_columns import describe_non_numbers, parse_numbers, parse_outcomes
from stagewise.problem.checks import check_mapping, check_number, is_listing, list_entries
from stagewise.problem.columns import suggest_column
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import join_names, safe_repr

ACTION_NAMES = ("action", "arm", "template", "variant", "treatment", "message", "offer", "choice")
REWARD_NAMES = ("click", "clicked", "reward", "conversion", "converted", "purchase", "bought", "success", "revenue")
COST_NAMES = (
    "opt_out", "optout", "unsubscribe", "unsubscribed", "complaint", "complained", "cost", "spam", "churn", "refund",
    "dislike", "bounce", "harm", "adverse",
)  # fmt: skip
SAFE_ACTION_NAMES = ("today", "control", "nothing", "none", "default", "baseline", "safe", "current", "holdout")
IGNORED_COLUMNS = ("propensity", *TIME_COLUMNS)  # columns of a log that are not about the user
MAX_ACTIONS = 1_000
MIN_ROWS = 100  # of a log that a problem is proposed from


@dataclass
class Roles:
    """The role of every column."""

    action: str
    actions: list[str]
    safe: str
    reward: str
    limits: dict[str, float | None]
    outcomes: dict[str, Floats]
    numbers: dict[str, Floats] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    guessed: list[str] = field(default_factory=list)


def assign_roles(
    arrays: Mapping[Any, npt.NDArray[Any]],
    action: Any,
    reward: Any,
    limits: Any,
    safe: Any,
    ignored: Sequence[Any] = (),
) -> Roles:
    """Return the role of every column; `ignored` are columns of times or propensities."""
    named = {name: array for name, array in arrays.items() if isinstance(name, str)}
    guessed: list[str] = []
    action_column = find_column(named, action, ACTION_NAMES, "action", guessed)
    reward_column = find_column(named, reward, REWARD_NAMES, "reward", guessed)
    costs = find_limits(named, limits, guessed)
    twice = [name for name in costs if name in (action_column, reward_column)] + (
        [action_column] if action_column == reward_column else []
    )
    if twice:
        raise InvalidOutcome(
            ErrorCode.DUPLICATE_NAME,
            "the column {twice} has two roles; action, reward and each limit need different columns",
            twice=safe_repr(twice[0]),
        )
    rows = named[action_column].size
    if rows < MIN_ROWS:
        raise InvalidOutcome(
            ErrorCode.LOG_TOO_SHORT,
            "the log has {rows:,} row{value}; a proposal needs at least {min_rows} to estimate "
            "rates, so declare the problem yourself and learn from these rows",
            rows=rows,
            value="s" * (rows != 1),
            min_rows=MIN_ROWS,
        )
    counts = Counter(to_text(value) for value in named[action_column].tolist())
    actions = sorted((name for name in counts if name is not None), key=lambda name: (-counts[name], name))
    most = min(MAX_ACTIONS, rows // 2)
    if not 2 <= len(actions) <= most:
        several = f"{len(actions):,} actions in {rows:,} rows; a proposal takes at most {most:,}"
        one = f"only the action {safe_repr(actions[0])}; a problem needs at least two" if actions else "no action"
        raise InvalidOutcome(
            ErrorCode.COLUMN_AMBIGUOUS,
            "the column {column} has {choice}; if another column holds the action, give action='...' or --action",
            column=safe_repr(action_column),
            choice=several if len(actions) > 1 else one,
        )
    safe_name = find_safe_action(actions, safe, guessed)
    outcomes = {name: parse_outcomes(named[name], name) for name in (reward_column, *costs)}
    ordered = [safe_name, *(name for name in actions if name != safe_name)]
    roles = Roles(action_column, ordered, safe_name, reward_column, costs, outcomes, guessed=guessed)
    for name, array in named.items():
        if name not in (action_column, reward_column, *costs):
            assign_column(roles, name, array, name in ignored)
    for name in [
        name for name, values in roles.numbers.items() if is_determined_by_action(values, named[action_column])
    ]:
        roles.numbers.pop(name)
        roles.ignored[name] = "it is the same in all rows of an action, so it describes the action, not the user"
    return roles


def is_determined_by_action(values: Floats, actions: npt.NDArray[Any]) -> bool:
    """Say whether a number is the same in all rows of every action, so it describes the action.

    >>> actions = np.array(["a", "a", "b"])
    >>> [is_determined_by_action(np.array(values), actions) for values in ([0.5, 0.5, 0.2], [0.5, 0.2, 0.2])]
    [True, False]
    """
    _, codes = np.unique([str(value) for value in actions.tolist()], return_inverse=True)
    first = np.full(int(codes.max()) + 1, np.nan)
    first[codes[::-1]] = values[::-1]
    return bool(np.all((values == first[codes]) | ~np.isfinite(values)))


def find_column(named: Mapping[str, Any], given: Any, usual_names: Sequence[str], what: str, guessed: list[str]) -> str:
    """Return the given column, or one with a usual name."""
    if given is not None or not usual_names:
        if not isinstance(given, str) or given not in named:
            raise InvalidOutcome(
                ErrorCode.COLUMN_MISSING,
                "{what} is {given}, which is not a column of the log{given_2}; its columns are {named}",
                what=what,
                given=safe_repr(given),
                given_2=suggest_column(given, list(named)),
                named=safe_repr(list(named)),
            )
        return given
    found = next((name for word in usual_names for name in named if name.lower() == word), None)
    if found is None:
        raise InvalidOutcome(
            ErrorCode.COLUMN_AMBIGUOUS,
            "the {what} column is not recognized by its name among {named}; give {what}='...', or --{what} ...",
            what=what,
            named=safe_repr(list(named)),
        )
    guessed.append(f"{what} {found!r}")
    return found


def find_limits(named: Mapping[str, Any], given: Any, guessed: list[str]) -> dict[str, float | None]:
    """Return the columns that have limits, with the given limits."""
    if given is None:
        found: dict[str, float | None] = {name: None for name in named if name.lower() in COST_NAMES}
        if not found:
            raise InvalidOutcome(
                ErrorCode.COLUMN_AMBIGUOUS,
                "no cost column is recognized by its name among {named}; give limits={{'opt_out': "
                "0.02}}, or --limit opt_out=0.02",
                named=safe_repr(list(named)),
            )
        guessed.append(f"limits on {join_names(found)}")
        return found
    if isinstance(given, str) or not (isinstance(given, Mapping) or is_listing(given)):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "limits is {given}; it must be a list of columns, or a mapping from columns to limits",
            given=safe_repr(given),
        )
    pairs: list[tuple[Any, Any]] = (
        list(check_mapping(given, "limits", InvalidOutcome).items())
        if isinstance(given, Mapping)
        else [(name, None) for name in list_entries(given, "limits", InvalidOutcome)]
    )
    if not pairs:
        raise InvalidOutcome(ErrorCode.MISSING_VALUE, "limits is empty; a problem needs at least one limit")
    return {
        name: None if value is None else check_number(value, f"the limit of {name!r}")
        for name, value in [(find_column(named, name, (), "a limit", guessed), value) for name, value in pairs]
    }


def find_safe_action(actions: list[str], given: Any, guessed: list[str]) -> str:
    """Return the safe action: as given, or by a usual name; the most frequent action may be any."""
    if given is not None:
        if not isinstance(given, str) or given not in actions:
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_ACTION,
                "safe is {given}; it must be an action of the log: {actions}",
                given=safe_repr(given),
                actions=join_names(actions),
            )
        return given
    found = next((name for word in SAFE_ACTION_NAMES for name in actions if name.lower() == word), None)
    if found is None:
        raise InvalidOutcome(
            ErrorCode.SAFE_ACTION_MISSING,
            "the safe action is not recognized by its name ({safe_action_names}, ...) among "
            "{actions}; give safe='...', or --safe ..., the action in use today",
            safe_action_names=", ".join(SAFE_ACTION_NAMES[:4]),
            actions=join_names(actions),
        )
    guessed.append(f"safe action {found!r}")
    return found


def assign_column(roles: Roles, name: str, array: npt.NDArray[Any], ignored: bool) -> None:
    """Assign the role of a column that is neither action nor outcome."""
    if (
        ignored
        or holds_times(array)
        or name in IGNORED_COLUMNS
        or name.startswith("probability.")
        or ID_PATTERN.fullmatch(name)
        or name.lower().endswith("_id")
    ):
        roles.ignored[name] = "it is a time, a probability or an id"
        return
    values = parse_numbers(array)
    if values is None and (text := describe_non_numbers(array.tolist())):
        roles.ignored[name] = text
    elif values is None:
        roles.texts.append(name)
    elif not name.strip() or not name.isprintable() or len(name) > 100:
        roles.ignored[name] = "a problem cannot have such a name"
    elif np.unique(values[np.isfinite(values)]).size < 2:
        roles.ignored[name] = "it has one value in all rows"
    else:
        roles.numbers[name] = values
