"""What a policy has learned: its memory, the alerts, and the tests that run while it learns.

An agent keeps one, and a server's fold of the log another; equal outcomes in equal order give equal states, to the bit.
"""

import math
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from typing import Any

import numpy as np

from stagewise.agent.changes import check_forget_costs, forget_costs
from stagewise.agent.mismatch import build_mismatch_test
from stagewise.agent.monitor import check_drift, check_marks, get_unwatched, play_safe, record_contradictions
from stagewise.agent.policy_adapter import PolicyAdapter
from stagewise.agent.pooling import record_falls
from stagewise.agent.statistics import Statistics
from stagewise.agent.storage import parse_count, parse_memory
from stagewise.engine.compile import Floats, Ints
from stagewise.policies.policy import BasePolicy, PolicyState
from stagewise.problem.checks import check_number
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason


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
