"""What a policy has learned: its memory, the alerts, and the tests of assumptions that run while it learns.

An agent keeps one, and a server's fold of the log another; equal outcomes in equal order give equal states, to the bit.

Tests of assumptions while an agent runs: drift, and contradictions, after which the safe action is played.

A mark stores the sums of a signal's model at some time. The outcomes before and after it are two samples of the same
means; if no means explain both, they changed, except with probability a (docs/theory/watch.md, Proposition 3). Every
signal has its own marks, set and tested by the number of its outcomes, so that an agent and a server that learn the
same outcomes find the same.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy, deepcopy
from functools import lru_cache
from typing import Any

import numpy as np

from stagewise.agent.agent_statistics import LOOK_AFTER, NEVER, DriftTrack, Statistics
from stagewise.agent.changes import check_forget_costs, forget_costs, record_changes
from stagewise.agent.health_findings import Check, format_finding_name
from stagewise.agent.mismatch import build_mismatch_test, record_falls
from stagewise.agent.policy_adapter import PolicyAdapter
from stagewise.agent.storage import parse_count, parse_memory
from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import PER_ROUND_SAFE, SAFE_INDEX, get_round_safe_action
from stagewise.engine.layout import SAFE_COST_DECLARED as BOUNDED
from stagewise.engine.model import Model
from stagewise.engine.workspace import (
    CENTRE,
    CONTRADICTED,
    HALF,
    MEAN_COST_BOUND,
    MODEL,
    NOISE,
    SAFE_COST,
    UNSAFE,
    encode_contradiction,
    get_limit_terms,
    has_switch,
)
from stagewise.models.diagnostics import MeanChange, Sums, build_cause, count_outcomes, decode_subject, subtract_sums
from stagewise.models.model_block import iter_model_blocks
from stagewise.policies.decisions import SafeActionBasis
from stagewise.policies.policy import BasePolicy, PolicyState
from stagewise.policies.rounds import RoundResult
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.checks import check_number
from stagewise.problem.division import name_segment
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import Contradiction, FallbackReason, ReasonDetails

Bound = tuple[Model, Any]  # a model, and its block
MIN_OUTCOMES = 32  # before the first mark
MAX_HALF_STEP, STEP_DIVISOR = 1024, 64  # outcomes between tests: half of all, up to the first, then all over the second


def iter_signals(policy: Any, memory: Floats) -> Iterator[tuple[str, int, int, Bound]]:
    """Yield every learned signal: its name, its index, the index of its model block, and the model with the block."""
    names = (policy.reward_name, *policy.thresholds.names)
    for which, bound in enumerate(policy.rounds.iter_blocks(memory)):
        for signal in range(max(bound[1].first, policy.first_reported), bound[1].first + bound[1].signals):
            yield names[signal], signal, which, bound


def find_drift(policy: Any, memory: Floats, statistics: Statistics, at_once: bool = False) -> list[str]:
    """Test the signals that are due for drift, and return the names of those that drifted.

    `at_once` tests all. A signal is due by the number of its outcomes; `updates_until_check` is set to the number of
    updates before the next one is due.
    """
    found, statistics.updates_until_check = list[str](), NEVER
    if not getattr(policy, "has_parts", False) or not policy.thresholds.names:
        return found
    sums_by_part: dict[int, Sums | None] = {}
    for name, signal, which, (model, block) in iter_signals(policy, memory):
        count = model.diagnostics.count(block, policy.settings, memory)
        if count is None:
            continue
        track = statistics.get_track(name)
        if at_once or count >= track.next_check:
            if which not in sums_by_part:
                sums_by_part[which] = model.diagnostics.get_sums(block, policy.settings, memory, str(which))
            now = sums_by_part[which]
            if now is not None:
                update_track(policy, memory, track, signal, which, (model, block), now)
                found += [name] * (track.moved is not None)
        statistics.updates_until_check = min(statistics.updates_until_check, max(int(track.next_check - count), 1))
    return found


def update_track(
    policy: Any, memory: Floats, track: DriftTrack, signal: int, which: int, bound: Bound, now: Sums
) -> None:
    """Test a signal against all its marks, set a mark if it is time, and schedule the next test."""
    answers = bound[0].diagnostics
    track.base = answers.restart(bound[1], track.base, now, str(which))
    moved, track.moved = find_shift(policy, memory, track, signal, which, bound, now), None
    if moved is not None and signal and policy.thresholds.names[signal - 1] in getattr(policy, "moduli", ()):
        answers.forget(bound[1], policy.settings, memory, moved.action, math.inf, moved.since)
    elif moved is not None:
        track.moved = build_drift_cause(policy, signal, moved)
    start, count = (0.0 if track.base is None else count_outcomes(track.base)), count_outcomes(now)
    last = count_outcomes(track.marks[-1]) if track.marks else start
    track.compared = (int(last - start), int(count - last)) if track.marks else None
    kept, growth = answers.kept_marks, 2.0 ** (1.0 / answers.per_doubling)
    if count - start >= max(growth * (last - start), MIN_OUTCOMES):
        track.marks = [*track.marks, now][-kept:]
        track.marked += 1
    since = int(count - start)
    track.next_check = int(count) + max(LOOK_AFTER, min(since // 2, MAX_HALF_STEP), since // STEP_DIVISOR)


def find_shift(
    policy: Any, memory: Floats, track: DriftTrack, signal: int, which: int, bound: Bound, now: Sums
) -> MeanChange | None:
    """Return the drift of a signal since one of its marks; None if there is none."""
    if not track.marks:
        return None
    answers, block = bound[0].diagnostics, bound[1]
    marks = [subtract_sums(track.base, sums) for sums in (*track.marks, now)]
    numbers = range(track.marked - len(track.marks), track.marked)
    level = answers.get_false_alarms(block, policy.settings)
    alarms = [compute_alarm_level(number, answers.per_doubling, level) for number in numbers]
    its = answers.moved(block, policy.settings, memory, marks, str(which), alarms)
    found = [one for one in its if block.first + one.signal == signal]
    return max(found, key=MeanChange.distance, default=None)


def compute_alarm_level(number: int, per_doubling: int, level: float | None = None) -> float:
    """Return log 1/a' of a mark: those of the i-th doubling share a/i(i+1), where a is `level` or FALSE_ALARMS."""
    doubling = 1 + number // per_doubling
    return math.log(per_doubling * doubling * (doubling + 1) / (FALSE_ALARMS if level is None else level))


def get_signal_sums(policy: Any, memory: Floats, name: str) -> Sums | None:
    """Return the sums of a signal's model block."""
    which, (model, block) = next((which, bound) for one, _, which, bound in iter_signals(policy, memory) if one == name)
    sums: Sums | None = model.diagnostics.get_sums(block, policy.settings, memory, str(which))
    return sums


def check_marks(policy: Any, memory: Floats, statistics: Statistics) -> None:
    """Raise if the marks of a file do not match this policy's sums."""
    for name, track in statistics.tracks.items():
        marks = [*track.marks, *([track.base] if track.base is not None else [])]
        signals = {one for one, *_ in iter_signals(policy, memory)} if marks else set()
        now = get_signal_sums(policy, memory, name) if name in signals else None
        if marks and (now is None or not all(is_comparable(sums, now) for sums in marks)):
            raise InvalidProblem(
                ErrorCode.STATE_MISMATCH, "the stored drift statistics do not match this policy's sums"
            )


def is_comparable(earlier: Sums, later: Sums) -> bool:
    """Return whether sums can be of an earlier time: the same shapes, except for segments that are new since."""
    if set(earlier) != set(later) or not all(np.isfinite(value).all() for value in earlier.values()):
        return False
    totals = {name for name in later if name.startswith("totals") and later[name].ndim == 1}
    cells = {name.replace("totals", other) for name in totals for other in ("totals", "pulls", "forgotten")}
    return all(
        value.shape == later[name].shape or (name in cells and value.ndim == 1 and value.size <= later[name].size)
        for name, value in earlier.items()
    ) and all(earlier[name].size == earlier[name.replace("totals", "pulls")].size for name in totals)


def build_drift_cause(policy: Any, signal: int, moved: MeanChange) -> ReasonDetails:
    """Return the cause of a drift, in the user's units."""
    names, several_means = (policy.reward_name, *policy.thresholds.names), moved.means is not None and moved.cells > 1
    early, late = moved.means or (math.nan, math.nan)
    return ReasonDetails.of(
        FallbackReason.ASSUMPTION_CONTRADICTED,
        found=Contradiction.DRIFT,
        limit=names[signal],
        action=None if moved.action < 0 else policy.describe_action(moved.action, moved.word),
        segment=None if moved.segment is None else name_segment(policy, names[signal], moved.segment),
        early=moved.early,
        late=moved.late,
        unit=moved.unit,
        early_mean=policy.to_user_units(signal, early),
        late_mean=policy.to_user_units(signal, late),
        weighted_by=None if not several_means else moved.word if moved.action < 0 else "segment",
    )


TERMS, HAS, GET_ROUND_SAFE_ACTION = as_python(get_limit_terms), as_python(has_switch), as_python(get_round_safe_action)
CHECKS = {
    MEAN_COST_BOUND: Check.MEAN_COST_BOUND,
    SAFE_COST: Check.SAFE_COST,
    NOISE: Check.NOISE,
    UNSAFE: Check.SAFE_ACTION,
    MODEL: Check.MODEL,
}


def get_alert_name(code: int, policy: BasePolicy) -> str:
    """Return the name of the finding that a kernel's contradiction code stands for."""
    kind, constraint = decode_subject(code)
    return format_finding_name(CHECKS[kind], policy.thresholds.names[constraint])


def find_contradictions(policy: BasePolicy, round_result: RoundResult, memory: Floats) -> list[int]:
    """Return the codes of all contradictions; a kernel stops at the first."""
    layout, settings, codes = round_result.layout, round_result.settings, []
    for model, part in iter_model_blocks(round_result.models, layout, memory):
        for signal in range(part.signals):
            j = part.first + signal - 1
            if j < 0:
                continue
            arrays, answers = (part, layout, settings, memory, signal), model.diagnostics
            evidence = answers.get_evidence(*arrays)
            if answers.tests_noise(part) and evidence.least > evidence.noise:
                codes.append(-encode_contradiction(NOISE, j))
            safe = policy.thresholds.signed_safe
            if safe is None or not answers.checks_safe_value or part.anchored != 1:
                continue
            if answers.contradicts_safe_value(*arrays, evidence, float(safe[j])):
                codes.append(-encode_contradiction(SAFE_COST, j))
    bounds, terms = round_result.workspace.bounds, TERMS(layout, settings)
    codes += find_declared_contradictions(policy, round_result, memory)
    for j, (threshold, ceiling) in enumerate(zip(terms.thresholds, terms.ceilings, strict=True)):
        lows, half = bounds[1 + j, CENTRE] - bounds[1 + j, HALF], bounds[1 + j, HALF, -1]
        if (lows > ceiling).any():
            codes.append(-encode_contradiction(MEAN_COST_BOUND, j))
        if half != 0.0 and lows[-1] > threshold:
            codes.append(-encode_contradiction(UNSAFE, j))
    return codes


def find_declared_contradictions(policy: BasePolicy, round_result: RoundResult, memory: Floats) -> list[int]:
    """Return the codes of contradicted models and of contradicted costs of this round's safe action."""
    layout, settings, codes = round_result.layout, round_result.settings, list[int]()
    safe_index = int(layout[SAFE_INDEX])
    for model, part in iter_model_blocks(round_result.models, layout, memory):
        codes += model.diagnostics.find_contradictions(part, layout, settings, memory)
    index, bounds = safe_index if safe_index >= 0 else -1, round_result.workspace.bounds
    for j, declared_cost in enumerate(get_declared_costs(policy, round_result)):
        if bounds[1 + j, CENTRE, index] - bounds[1 + j, HALF, index] > declared_cost:
            codes.append(-encode_contradiction(SAFE_COST, j))
    return codes


def get_declared_costs(policy: BasePolicy, round_result: RoundResult) -> list[float]:
    """Return the declared signed costs of this round's safe action, if they are upper bounds."""
    if HAS(round_result.layout, PER_ROUND_SAFE):
        return [float(cost) for cost in GET_ROUND_SAFE_ACTION(round_result.layout, round_result.settings).costs]
    if HAS(round_result.layout, BOUNDED):
        return list(getattr(policy, "declared_costs", ()))
    return []


def check_drift(policy: Any, memory: Floats, statistics: Statistics, at_once: bool = False) -> None:
    """Test the signals that are due for drift, and record an alert for each cost that drifted.

    `at_once` tests all signals, as after a log.
    """
    for name in find_drift(policy, memory, statistics, at_once):
        if name in policy.thresholds.names and getattr(policy, "check_assumptions", False):
            moved = statistics.get_track(name).moved
            if moved is not None:
                statistics.alerts.setdefault(format_finding_name(Check.DRIFT, name), moved)
    record_changes(policy, memory, statistics)


def record_contradictions(policy: Any, state: PolicyState, statistics: Statistics, decision: Decision) -> None:
    """Record an alert for every contradiction; it stays, since later data cannot undo a rejection."""
    round_result = decision._round_result
    if round_result is None or not policy.has_parts:
        if decision.reason_details is not None:
            name = format_finding_name(Check.DECLARED_VALUE, decision.reason_details.details["limit"])
            statistics.alerts[name] = decision.reason_details
        return
    first = [round_result.code] if round_result.code <= -CONTRADICTED else []
    for code in [*first, *find_contradictions(policy, round_result, state.memory)]:
        arrays = (
            round_result.models,
            round_result.layout,
            round_result.settings,
            state.memory,
            round_result.workspace.bounds,
        )
        statistics.alerts[get_alert_name(code, policy)] = build_cause(code, policy.display_thresholds, *arrays)


@lru_cache(maxsize=16)
def get_unwatched(policy: Any) -> Any:
    """Return the same policy with check_assumptions=False."""
    return policy.without_watch()


def play_safe(policy: Any, decision: Decision, actions: Any, cause: ReasonDetails) -> Decision:
    """Return the decision with the safe action in place of the chosen one."""
    safe, limits, (low, length) = policy.safe_action, policy.display_thresholds, policy.reward_span
    action, index, step = policy.get_safe_action(decision)
    probabilities: Any = decision[3]
    if probabilities is not None:
        probabilities = np.zeros(probabilities.size)
        probabilities[index] = 1.0
    reward = low + length * (1.0 if safe.reward is None else safe.reward)
    label = "safe action" if policy.names is None else f"{policy.names[index]} (safe)"
    safe_decision = decision._replace(
        action=action, action_index=None if index < 0 else index, step_size=step, probabilities=probabilities,
        optimistic_reward=reward, pessimistic_cost=limits.at_safe, reason_details=cause, solver_gap=0.0,
    )  # fmt: skip
    basis = SafeActionBasis(limits, label, reward, cause.message)
    return safe_decision._with(basis, decision._offered, decision._uncached)


def acknowledge_alert(policy: Any, memory: Floats, statistics: Statistics, name: Any, note: Any) -> None:
    """Acknowledge an alert; after a drift alert, the test starts again with the outcomes from now on."""
    if not isinstance(note, str):
        template = "note is {note}; it must be text that says who acknowledged the alert and why"
        raise InvalidProblem(ErrorCode.WRONG_TYPE, template, note=safe_repr(note))
    open_alerts = statistics.open_alerts | statistics.open_warnings
    if not isinstance(name, str) or name not in open_alerts:
        template = "{name} is not an open alert; the open alerts are {open_alerts}"
        data = {"name": safe_repr(name), "open_alerts": safe_repr(list(open_alerts))}
        raise InvalidProblem(ErrorCode.NO_OPEN_ALERT, template, **data)
    details = open_alerts[name].details
    if details["found"] != Contradiction.DRIFT or not policy.has_parts:
        statistics.acknowledged[name] = note
        return
    del statistics.alerts[name]
    limit = details["limit"]  # the tests of the other signals go on
    statistics.tracks[limit] = DriftTrack(get_signal_sums(policy, memory, limit), statistics.get_track(limit).marked)
    statistics.updates_until_check = 1


class LearnedState:
    """A policy with its memory, its statistics and the number of updates."""

    def __init__(self, policy: BasePolicy, state: Any = None, statistics: Statistics | None = None) -> None:
        self._bind(policy)
        self.state = policy.start() if state is None else state
        self.update_count = 0
        self.forgotten: dict[int, float] = {}  # by action, the time before which its costs are not learned
        self.statistics = Statistics() if statistics is None else statistics
        self.mismatch = build_mismatch_test(policy) if state is None else None  # a snapshot is not tested

    def _bind(self, policy: Any) -> None:
        """Use a policy; its own `decide`, unless that only checks a state that is trusted here."""
        self.policy, is_checked = policy, type(policy).decide is BasePolicy.decide
        self._choose: Callable[..., Decision] = policy.choose if is_checked else policy.decide

    def decide(self, actions: Any, draw: RandomKey) -> Decision:
        """Choose as the policy does, but the safe action while an alert is open.

        Contradictions that the policy finds are recorded; once all are acknowledged, it decides without its tests.
        """
        policy, statistics, decision = self.policy, self.statistics, self._choose(self.state, actions, draw)
        cause = decision.reason_details
        contradicted = cause is not None and cause.reason is FallbackReason.ASSUMPTION_CONTRADICTED
        if not (contradicted or statistics.alerts) or isinstance(policy, PolicyAdapter):
            return decision
        if contradicted:
            record_contradictions(policy, self.state, statistics, decision)
        alert = statistics.alert
        if alert is not None:
            return decision if cause == alert else play_safe(policy, decision, actions, alert)
        is_complete = decision._round_result is not None or not policy.has_parts  # every contradiction is recorded
        return get_unwatched(policy).choose(self.state, actions, draw) if contradicted and is_complete else decision

    def decide_aside(self, actions: Any, draw: RandomKey) -> Decision:
        """Choose as `decide` does, and record nothing."""
        other = copy(self)
        other.statistics = self.statistics.clone()
        return other.decide(actions, draw)

    def learn_row(self, index: int, played: Any, values: Any) -> None:
        """Learn the values of a played action, and run the tests that are due."""
        if self.forgotten:
            values = self.leave_out_forgotten(played.action[np.newaxis], values[np.newaxis])[0]
        if self.mismatch is not None and self.mismatch.needs_ends:
            self.learn_rows(np.array([index]), played.action[np.newaxis], values[np.newaxis])
            return
        self.state = self.policy.learn_in_place(self.state, played, values)
        self.update_count += 1
        if self.mismatch is not None:
            self.mismatch.learn_row(played.action, values, index)
        self.statistics.updates_until_check -= 1
        if self.statistics.updates_until_check <= 0:
            self.run_tests()

    def learn_rows(self, indices: Ints, rows: Floats, values: Floats) -> None:
        """Learn rows of decisions, NaN for missing signals, in compiled code up to each test, as one by one."""
        done, values = 0, self.leave_out_forgotten(rows, values)
        while done < len(indices):
            part = slice(done, done + self.statistics.updates_until_check)
            if self.mismatch is None:
                self.state = self.policy.learn_rows(self.state, rows[part], values[part])
            else:
                self.state = self.mismatch.learn_state(self.policy, self.state, rows[part], values[part], indices[part])
            count = len(indices[part])
            done, self.update_count = done + count, self.update_count + count
            self.statistics.updates_until_check -= count
            if self.statistics.updates_until_check <= 0:
                self.run_tests()

    def learn_log(self, actions: Any, values: Floats) -> None:
        """Learn a log as one batch, and run all tests."""
        values = self.leave_out_forgotten(actions, values)
        self.state, self.update_count = self.policy.learn_log(self.state, actions, values), self.update_count + 1
        if self.mismatch is not None:
            self.mismatch.learn_rows(actions, values)
        self.run_tests(at_once=True)

    def run_tests(self, at_once: bool = False) -> None:
        """Run the tests of drift and of mismatch that are due."""
        memory: Any = getattr(self.state, "memory", None)  # a policy of one's own may have none and is not tested
        check_drift(self.policy, memory, self.statistics, at_once)
        record_falls(self.policy, memory, self.statistics)
        if self.mismatch is not None:
            self.mismatch.check(self.policy, memory, self.statistics, at_once)

    def cache_offered(self, decision: Decision) -> None:
        """Cache the candidates that a decision was offered first."""
        self.state, self.update_count = self.policy.cache_offered(self.state, decision), self.update_count + 1

    def forget_costs(self, action: Any, before: Any, pending: Floats) -> None:
        """Forget what was learned of an action's costs before a time, and do not learn it from now on, or raise.

        Without a time all is forgotten, and so are the outcomes of decisions that are pending, rows (n, D).
        """
        index, since = check_forget_costs(self.policy, action, before)
        forget_costs(self.policy, self.state.memory, index, since)
        if math.isinf(since):
            since = float(np.nextafter(pending[:, -1].max(initial=-math.inf), math.inf))
        self.forgotten[index] = max(self.forgotten.get(index, since), since)
        self.update_count += 1

    def leave_out_forgotten(self, rows: Any, values: Floats) -> Floats:
        """Return the values (n, 1 + m) of rows, NaN for costs that drift where a person had them forgotten."""
        if not self.forgotten:
            return values
        left, names = np.array(values), self.policy.thresholds.names
        drifting = [1 + j for j, name in enumerate(names) if name in self.policy.moduli]
        for index, since in self.forgotten.items():
            left[np.ix_((rows[:, 0] == index) & (rows[:, -1] < since), drifting)] = math.nan
        return left

    def extend(self, policy: Any) -> None:
        """Go on with a policy that has more actions, or a later version of a score."""
        self.state, self.update_count = policy.grow_state(self.policy, self.state), self.update_count + 1
        if self.mismatch is not None:
            self.mismatch.extend(self.policy, policy)
        self._bind(policy)
        self.statistics.reset_tracks()

    def clone(self) -> "LearnedState":
        """Return an independent copy."""
        other = copy(self)
        other._bind(copy(self.policy))  # a policy caches some of its numbers
        other.state, other.forgotten = deepcopy(self.state), dict(self.forgotten)
        other.statistics = self.statistics.clone()
        other.mismatch = None if self.mismatch is None else self.mismatch.clone()
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the policy; the memory is an array, which each file encodes in its way."""
        return {
            "memory": self.state.memory.copy(),
            "learned": self.update_count,
            "forgotten": list(self.forgotten.items()),
            "statistics": self.statistics.to_dict(),
            "mismatch": None if self.mismatch is None else self.mismatch.to_dict(),
        }

    def restore(self, content: Mapping[str, Any]) -> None:
        """Restore what `to_dict` returned, from a file whose memory is a list or bytes."""
        stored = content["memory"]
        memory = np.frombuffer(stored).copy() if isinstance(stored, bytes) else parse_memory(stored)
        if not self.policy.fits(memory) or not np.isfinite(memory).all():
            raise InvalidFile(ErrorCode.STATE_MISMATCH, "the stored state does not match its policy")
        self.state, self.update_count = PolicyState(memory), parse_count(content["learned"], "learned")
        self.forgotten = {
            parse_count(index, "action", self.policy.actions): float(check_number(since, "forgotten"))
            for index, since in content["forgotten"]
        }
        if self.mismatch is not None:
            self.mismatch.restore(content["mismatch"])
        self.statistics = Statistics.from_dict(content["statistics"])
        check_marks(self.policy, memory, self.statistics)
