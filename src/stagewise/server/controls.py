"""What people change while the log continues: mode, canary share and kill switch, and versions of a problem.

Confidence sets are declared before their data and hold for all rounds together, whatever the limits and available
actions are. So limits and actions may change, and the complete log is still learned. What defines the sets (δ,
ranges, models, windows, the declared safe costs) cannot change after data were seen.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple, get_args

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_choice, check_number
from stagewise.problem.division import RiskScore
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.signals import Limit, describe_limit, encode_limit, encode_signal
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server.confidence_intervals import get_threshold
from stagewise.server.event_log import CONTROL, Event
from stagewise.server.messages import Mode

MODES = get_args(Mode)
MODE, KILL, RESUME, ACKNOWLEDGE, TRIP = "mode", "kill", "resume", "acknowledge", "trip"
FORGET_COSTS = "forget_costs"
ERASE = "erase"
RESTORED = "restored"


class Controls(NamedTuple):
    """The controls after a row of the log."""

    row: int = 0
    """The number of the last control or problem row that was applied."""
    mode: Mode = "shadow"
    share: float = 1.0
    """In mode canary, the share of decisions that the policy makes."""
    killed: ReasonDetails | None = None
    """Why the kill switch is on, and who turned it on; None if it is off."""

    def apply(self, event: Event) -> "Controls":
        """Return the controls after one more row; a problem row only sets `row`.

        >>> body = b'{"what":"kill","actor":"ada","reason":"complaints doubled"}'
        >>> Controls().apply(Event(3, 0, "control", "3", -1, body)).killed.message
        'killed by ada: complaints doubled'
        """
        now = self._replace(row=event.number)
        if event.kind != CONTROL:
            return now
        body = msgspec.json.decode(event.body)
        what = body.get("what")
        if what == MODE:
            return now._replace(mode=body["mode"], share=float(body["share"]))
        if what == KILL:
            return now._replace(
                killed=ReasonDetails.of(FallbackReason.KILLED, actor=body["actor"], note=body["reason"])
            )
        if what == TRIP:
            details = {"trip": body["trip"], "details": body["details"]}
            return now._replace(killed=ReasonDetails.of(FallbackReason.TRIPPED, actor=body["actor"], **details))
        return now._replace(killed=None) if what == RESUME else now


def fold_controls(events: Iterable[Event], controls: Controls | None = None) -> Controls:
    """Apply rows to controls."""
    controls = Controls() if controls is None else controls
    for event in events:
        controls = controls.apply(event)
    return controls


def parse_mode(mode: Any, share: Any) -> tuple[Mode, float]:
    checked: Any = check_choice(mode, MODES, "mode")
    if checked != "canary":
        if share is not None:
            template = "share is {share} and mode is {mode!r}; only mode 'canary' has a share"
            raise InvalidProblem(ErrorCode.CONFLICTING_SETTINGS, template, share=safe_repr(share), mode=checked)
        return checked, 1.0
    if share is None:
        raise InvalidProblem(
            ErrorCode.MISSING_VALUE, "mode is 'canary' and share is missing; give the share of decisions, such as 0.05"
        )
    fraction = check_number(share, "share")
    if not 0.0 < fraction < 1.0:
        percent = "; was it a percentage?" if 1.0 <= fraction <= 100.0 else ""
        template = "share is {fraction:g}; the share of a canary must be between 0 and 1{percent}"
        raise InvalidProblem(ErrorCode.OUT_OF_RANGE, template, fraction=fraction, percent=percent)
    return checked, fraction


def is_in_canary(id_: str, share: float) -> bool:
    """Return whether a decision is in the canary's share; it depends only on the id, so a retry agrees.

    >>> sum(is_in_canary(f"user-{i}", 0.1) for i in range(10_000))
    1009
    """
    return int.from_bytes(hashlib.sha256(b"canary\0" + id_.encode()).digest()[:8]) < share * 2**64


INHERITED_SETTING = "initial_actions"  # later versions inherit it


class ProblemVersion(NamedTuple):
    """A version of a problem with the actions of all versions so far; some are retired."""

    number: int
    problem: Problem
    retired: frozenset[str]


def build_first_version(problem: Problem) -> ProblemVersion:
    return ProblemVersion(1, problem, frozenset())


def build_version(before: ProblemVersion | None, event: Event) -> ProblemVersion:
    """Return the version that a problem row starts; `before` is None for the first one."""
    new_problem = Problem.from_dict(msgspec.json.decode(event.body)["problem"])
    return build_first_version(new_problem) if before is None else build_next_version(before, new_problem)


def build_next_version(before: ProblemVersion, new_problem: Problem) -> ProblemVersion:
    """Return the next version. Raises InvalidProblem if something changes that must not."""
    current, new_problem = before.problem, match_order(before.problem, new_problem)
    check_same("safe_name", current.safe_name, new_problem.safe_name)
    check_same("delta", current.delta, new_problem.delta)
    check_same("context", list(current.context_columns.items()), list(new_problem.context_columns.items()))
    check_same("reward", encode_signal(current.reward), encode_signal(new_problem.reward))
    check_same("names of limits", tuple(current.limits), tuple(new_problem.limits))
    for name, limit in current.limits.items():
        check_limit(name, limit, new_problem.limits[name])
    if not set(new_problem.context_names) <= set(current.context_names):  # rows of the log lack the column
        check_same("columns", current.context_names, new_problem.context_names)
    settings = {INHERITED_SETTING: len(current.action_names), **current.settings}
    old_ranges, new_ranges = get_score_ranges(current), get_score_ranges(new_problem)
    for name in old_ranges.keys() & new_ranges.keys():  # by which the contexts of the log are read again
        check_same("range", old_ranges[name], new_ranges[name], f" of the score {name!r}")
    check_settings(settings, new_problem.settings)
    more = [name for name in new_problem.action_names if name not in current.action_names]
    problem = replace(
        current, action_names=[*current.action_names, *more], limits=dict(new_problem.limits), settings=settings
    )
    return ProblemVersion(
        before.number + 1, problem, frozenset(current.action_names) - frozenset(new_problem.action_names)
    )


def check_same(field: str, old: Any, new: Any, where: str = "") -> None:
    """Reject a change of something that must stay."""
    if old != new:
        template = (
            "{field}{where} cannot change from {old!r} to {new!r}: a value chosen after seeing outcomes voids the "
            "guarantee; create a new experiment for it"
        )
        raise InvalidProblem(ErrorCode.CHANGE_NOT_ALLOWED, template, field=field, where=where, old=old, new=new)


def check_settings(first: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Reject settings that differ from the first version's; an inherited setting may be left out."""
    inherited = first[INHERITED_SETTING]
    check_same(f"settings.{INHERITED_SETTING}", inherited, new.get(INHERITED_SETTING, inherited))
    before, after = ({k: v for k, v in one.items() if k != INHERITED_SETTING} for one in (first, new))
    check_same("settings", before, after)


def check_limit(name: str, old: Limit, new: Limit) -> None:
    """Reject any change of a limit except `on_mismatch`, `on_jump`, its value, and a newer score.

    The value is the prior mean of a linear or logistic cost, and sets the grid of epochs where a slope or a budget of
    drift is declared; such a limit keeps it.
    """
    before, after = encode_limit(old), encode_limit(new)
    for one in fields(Limit):
        may_change = one.name in ("value", "on_mismatch", "on_jump") or is_newer_score(old.score, new.score, one.name)
        if not may_change and getattr(old, one.name) != getattr(new, one.name):
            check_same(one.name, before.get(one.name), after.get(one.name), f" of {name!r}")
    if old.model in ("linear", "logistic") or (old.modulus is not None and old.modulus.amount > 0.0):
        check_same("value", describe_limit(old), describe_limit(new), f" of {name!r}")
    if old.at_least != new.at_least:
        check_same("at_least", describe_limit(old), describe_limit(new), f" of {name!r}")


def get_score_ranges(problem: Problem) -> dict[str, tuple[float, float]]:
    scores = [limit.score for limit in problem.limits.values() if isinstance(limit.score, RiskScore)]
    return {score.name: score.ends for score in scores if score.weights is None}


def is_newer_score(old: Any, new: Any, setting: str) -> bool:
    """Return whether this setting is a later version of a score: its cells start anew, with their own share of δ."""
    return (
        setting == "score" and isinstance(old, RiskScore) and isinstance(new, RiskScore) and new.version > old.version
    )


def describe_loosening(before: ProblemVersion, after: ProblemVersion) -> str | None:
    """Describe what a version allows that the one before does not; None if nothing.

    >>> problem = {"action_names": ["a", "b"], "safe_name": "a", "reward": {"name": "r"}}
    >>> problem["limits"] = {"c": {"at_most": 0.1}}
    >>> looser = {**problem, "limits": {"c": {"at_most": 0.2}}}
    >>> one = build_first_version(Problem.from_dict(problem))
    >>> describe_loosening(one, build_next_version(one, Problem.from_dict(looser)))
    "'c' at most 0.2 where it is at most 0.1"
    """
    for name, old in before.problem.limits.items():
        new = after.problem.limits[name]
        if get_threshold(new) < get_threshold(old) if old.at_least else get_threshold(new) > get_threshold(old):
            return f"{name!r} {describe_limit(new)} where it is {describe_limit(old)}"
    offered = get_declared_problem(before)["action_names"]
    added = [name for name in get_declared_problem(after)["action_names"] if name not in offered]
    return f"the action {added[0]!r}, which is not on offer" if added else None


def match_order(current: Problem, new_problem: Problem) -> Problem:
    """Return a problem with names in the order of an earlier one; JSON objects have no order."""
    context, limits = dict(new_problem.context_columns), dict(new_problem.limits)
    if context.keys() == set(current.context):
        context = {name: context[name] for name in current.context}
    if limits.keys() == current.limits.keys():
        limits = {name: limits[name] for name in current.limits}
    return replace(new_problem, context=context, limits=limits)


def get_declared_problem(version: ProblemVersion) -> dict[str, Any]:
    """Return the problem of a version as a user declares it, without inherited settings."""
    content = version.problem.to_dict()
    actions = [name for name in content["action_names"] if name not in version.retired]
    settings = {k: v for k, v in content["settings"].items() if k != INHERITED_SETTING}
    return {**content, "action_names": actions, "settings": settings}
