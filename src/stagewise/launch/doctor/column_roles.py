"""Assign a role to every column of a log: as given, or guessed by name and values; guesses are reported."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Floats
from stagewise.launch.decision_log import TIME_COLUMNS, holds_times, to_text
from stagewise.launch.doctor.row_checks import is_id
from stagewise.problem.checks import check_mapping, check_number, is_listing, list_entries
from stagewise.problem.columns import describe_non_number, find_non_number, is_blank, suggest_column
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import join_names, safe_repr

ACTION_NAMES = ("action", "arm", "template", "variant", "treatment", "message", "offer", "choice")
REWARD_NAMES = ("click", "clicked", "reward", "conversion", "converted", "purchase", "bought", "success", "revenue")
COST_NAMES = (
    "opt_out", "optout", "unsubscribe", "unsubscribed", "complaint", "complained", "cost", "spam", "churn", "refund",
    "dislike", "bounce", "harm", "adverse",
)  # fmt: skip
SAFE_ACTION_NAMES = ("today", "control", "nothing", "none", "default", "baseline", "safe", "current", "holdout")
DECISION_PREFIXES = ("probability.", "proposed.", "scores.", "proposal.")  # of columns that describe a decision
IGNORED_COLUMNS = ("propensity", *TIME_COLUMNS)  # columns of a log that are not about the user
MAX_ACTIONS = 1_000
MIN_ROWS = 100  # of a log that a problem is proposed from
MIN_NUMERIC_SHARE = 0.9  # share of numbers above which the other values are mistakes, not groups
OF_ACTION = "it is the same in all rows of an action, so it describes the action, not the user"


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
    columns = [action_column, reward_column, *costs]
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        template = "the column {twice} has two roles; action, reward and each limit need different columns"
        raise InvalidOutcome(ErrorCode.DUPLICATE_NAME, template, twice=safe_repr(twice))
    actions = list_actions(named[action_column], action_column)
    safe_action = find_safe_action(actions, safe, guessed)
    outcomes = {name: parse_outcomes(named[name], name) for name in (reward_column, *costs)}
    actions = [safe_action, *(name for name in actions if name != safe_action)]
    roles = Roles(action_column, actions, safe_action, reward_column, costs, outcomes, guessed=guessed)
    for name, array in named.items():
        if name not in columns:
            assign_column(roles, name, array, named[action_column], name in ignored)
    return roles


def list_actions(column: npt.NDArray[Any], name: str) -> list[str]:
    """Return the actions, the most frequent first; reject a log from which nothing can be proposed."""
    rows = column.size
    if rows < MIN_ROWS:
        template = (
            "the log has {rows:,} rows; a proposal needs at least {min_rows} to estimate rates, so declare the "
            "problem yourself and learn from these rows"
        )
        raise InvalidOutcome(ErrorCode.LOG_TOO_SHORT, template, rows=rows, min_rows=MIN_ROWS)
    counts = Counter(to_text(value) for value in column.tolist())
    actions = sorted((action for action in counts if action is not None), key=lambda action: (-counts[action], action))
    most = min(MAX_ACTIONS, rows // 2)
    if not 2 <= len(actions) <= most:
        template = (
            "the column {name} has {actions_count:,} actions in {rows:,} rows; a proposal takes 2 to "
            "{most:,}; if another column holds the action, give action='...' or --action"
        )
        data = {"name": safe_repr(name), "actions_count": len(actions), "rows": rows, "most": most}
        raise InvalidOutcome(ErrorCode.COLUMN_AMBIGUOUS, template, **data)
    return actions


def find_column(named: Mapping[str, Any], given: Any, usual_names: Sequence[str], what: str, guessed: list[str]) -> str:
    if given is not None or not usual_names:
        if not isinstance(given, str) or given not in named:
            raise InvalidOutcome(
                ErrorCode.COLUMN_MISSING,
                "{what} is {given}, which is not a column of the log{hint}; its columns are {named}",
                what=what,
                given=safe_repr(given),
                hint=suggest_column(given, list(named)),
                named=safe_repr(list(named)),
            )
        return given
    found = next((name for word in usual_names for name in named if name.lower() == word), None)
    if found is None:
        template = "the {what} column is not recognized by its name among {named}; give {what}='...', or --{what} ..."
        raise InvalidOutcome(ErrorCode.COLUMN_AMBIGUOUS, template, what=what, named=safe_repr(list(named)))
    guessed.append(f"{what} {found!r}")
    return found


def find_limits(named: Mapping[str, Any], given: Any, guessed: list[str]) -> dict[str, float | None]:
    if given is None:
        found: dict[str, float | None] = {name: None for name in named if name.lower() in COST_NAMES}
        if not found:
            template = (
                "no cost column is recognized by its name among {named}; give limits={{'opt_out': "
                "0.02}}, or --limit opt_out=0.02"
            )
            raise InvalidOutcome(ErrorCode.COLUMN_AMBIGUOUS, template, named=safe_repr(list(named)))
        guessed.append(f"limits on {join_names(found)}")
        return found
    if isinstance(given, str) or not (isinstance(given, Mapping) or is_listing(given)):
        rule = "a list of columns, or a mapping from columns to limits"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "limits", given, rule)
    if isinstance(given, Mapping):
        pairs = list(check_mapping(given, "limits", InvalidOutcome).items())
    else:
        pairs = [(name, None) for name in list_entries(given, "limits", InvalidOutcome)]
    if not pairs:
        raise InvalidOutcome(ErrorCode.MISSING_VALUE, "limits is empty; a problem needs at least one limit")
    return {
        find_column(named, name, (), "a limit", guessed): (
            None if value is None else check_number(value, f"the limit of {name!r}")
        )
        for name, value in pairs
    }


def find_safe_action(actions: list[str], given: Any, guessed: list[str]) -> str:
    """Return the safe action: as given, or by a usual name; the most frequent action may be any."""
    if given is not None:
        if not isinstance(given, str) or given not in actions:
            raise InvalidOutcome.must_be_one_of(ErrorCode.UNKNOWN_ACTION, "safe", given, actions)
        return given
    found = next((name for word in SAFE_ACTION_NAMES for name in actions if name.lower() == word), None)
    if found is None:
        template = (
            "the safe action is not recognized by its name ({safe_action_names}, ...) among "
            "{actions}; give safe='...', or --safe ..., the action in use today"
        )
        data = {"safe_action_names": ", ".join(SAFE_ACTION_NAMES[:4]), "actions": join_names(actions)}
        raise InvalidOutcome(ErrorCode.SAFE_ACTION_MISSING, template, **data)
    guessed.append(f"safe action {found!r}")
    return found


def assign_column(
    roles: Roles, name: str, array: npt.NDArray[Any], actions: npt.NDArray[Any], is_ignored: bool
) -> None:
    """Assign the role of a column that is neither action nor outcome."""
    is_row_data = is_ignored or holds_times(array) or name in IGNORED_COLUMNS or name.startswith(DECISION_PREFIXES)
    if is_row_data or is_id(name) or name.lower().endswith("_id"):
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
    elif is_constant_by_action(values, actions):
        roles.ignored[name] = OF_ACTION
    else:
        roles.numbers[name] = values


def is_constant_by_action(values: Floats, actions: npt.NDArray[Any]) -> bool:
    """Say whether a number is the same in all rows of every action, so it describes the action."""
    _, codes = np.unique([str(value) for value in actions.tolist()], return_inverse=True)
    first = np.full(int(codes.max()) + 1, np.nan)
    first[codes[::-1]] = values[::-1]
    return bool(np.all((values == first[codes]) | ~np.isfinite(values)))


# Numbers, also if they were logged as text.


def parse_outcomes(array: npt.NDArray[Any], name: str) -> Floats:
    values, entries = parse_numbers(array), array.tolist()
    odd = find_non_number(entries) if values is None else None
    if odd is not None or values is None or not np.isfinite(values).any():
        template = "the column {name} must hold outcomes, and it holds {entries}"
        data = {"name": safe_repr(name), "entries": "no numbers" if odd is None else describe_non_number(entries, odd)}
        raise InvalidOutcome(ErrorCode.COLUMN_WRONG_TYPE, template, **data)
    return np.where(np.isfinite(values), values, np.nan)


def describe_non_numbers(entries: list[Any]) -> str:
    """Return which value of a mostly numeric column is not a number; empty for other columns."""
    known = [entry for entry in entries if to_text(entry) is not None]
    good = sum(find_non_number([entry]) is None for entry in known)
    odd = find_non_number(entries)
    if odd is None or good < MIN_NUMERIC_SHARE * len(known):
        return ""
    return f"{good:,} of its {len(known):,} values are numbers, and it holds {describe_non_number(entries, odd)}"


def parse_numbers(array: npt.NDArray[Any]) -> Floats | None:
    """Return a column as numbers, also if they were logged as text; None if it holds something else."""
    if array.dtype.kind in "bfiu":
        return array.astype(np.float64)
    if array.dtype.kind != "O":
        return None
    try:
        return np.array([parse_number(entry) for entry in array.tolist()])
    except (TypeError, ValueError, OverflowError):
        return None


def parse_number(entry: Any) -> float:
    """Return one entry as a number, NaN if it is missing."""
    if is_blank(entry):
        return float("nan")
    if isinstance(entry, str) and entry.strip().lower() in ("nan", "inf", "-inf", "infinity"):
        return float("nan")
    return float(entry)
