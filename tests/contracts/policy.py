"""What every policy promises, whatever it is made of: one contract, checked over simulated rounds.

A `Case` is a policy in a world that keeps the policy's promises. Its rounds are driven by hand once, with
`RandomKey(SEED, 0, round)`, and kept; every test of the contract looks at these rounds.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import (
    Agent,
    AlwaysSafe,
    ArmSet,
    Decision,
    FiniteSet,
    InvalidActions,
    InvalidOutcome,
    InvalidProblem,
    Outcome,
    PolicyState,
    RandomKey,
    RaySet,
)
from stagewise.problem.errors import ErrorCode

SEED, ROUNDS, LONG = 7, 60, 200

FIELDS = (
    "action",
    "action_index",
    "step_size",
    "probabilities",
    "optimistic_reward",
    "pessimistic_cost",
    "thresholds",
    "message",
    "round",
)


@dataclass(frozen=True)
class LinearWorld:
    """Fresh targets in every round, and signals that are linear in them; the first is the reward."""

    safe: np.ndarray  # (d,)
    parameters: np.ndarray  # (1 + m, d)
    finite: bool = False  # a list of actions, or rays to them
    noise: float = 0.05

    def targets(self, round_: int) -> np.ndarray:
        random = np.random.default_rng([1, round_])
        targets = random.normal(size=(6, self.safe.size))
        return 0.9 * targets / np.linalg.norm(targets, axis=1, keepdims=True)

    def actions(self, round_: int) -> Any:
        """Return an action set in one of the forms a user may give it in: a set, a table, a part of a set."""
        listed = (FiniteSet if self.finite else RaySet)(self.targets(round_))
        return [listed, self.targets(round_), listed.only([0, 2, 5])][round_ % 3]

    def eligible(self, round_: int) -> set[int]:
        return {0, 2, 5} if round_ % 3 == 2 else set(range(6))

    def means(self, action: Any) -> np.ndarray:
        return self.parameters @ action

    def listed_means(self, round_: int) -> np.ndarray:
        """Return the true means (1 + m, K + 1) of the listed actions, then of the safe one."""
        return self.parameters @ np.vstack([self.targets(round_), self.safe]).T

    def outcome(self, action: Any, round_: int) -> Outcome:
        noise = self.noise * np.random.default_rng([2, round_]).normal(size=len(self.parameters))
        reward, *costs = (self.means(action) + noise).tolist()
        return Outcome(reward, costs)


@dataclass(frozen=True)
class ArmsWorld:
    """Arms with means in [0, 1] and outcomes near them; the first signal is the reward."""

    safe: int
    table: np.ndarray  # (1 + m, K)

    def actions(self, round_: int) -> Any:
        arms = ArmSet(self.table.shape[1])
        return arms.only([0, 2, 3]) if round_ % 3 == 2 else arms

    def eligible(self, round_: int) -> set[int]:
        return {0, 2, 3} if round_ % 3 == 2 else set(range(self.table.shape[1]))

    def means(self, action: Any) -> np.ndarray:
        return self.table[:, action]

    def listed_means(self, round_: int) -> np.ndarray:
        return np.column_stack([self.table, self.table[:, self.safe]])

    def outcome(self, action: Any, round_: int) -> Outcome:
        noise = np.random.default_rng([2, round_]).uniform(-0.05, 0.05, len(self.table))
        reward, *costs = np.clip(self.means(action) + noise, 0.0, 1.0).tolist()
        return Outcome(reward, costs)


class Round(NamedTuple):
    """One round driven by hand."""

    state: PolicyState
    memory: bytes  # of the state, before it was decided from
    actions: Any
    draw: RandomKey
    decision: Decision
    outcome: Outcome


@dataclass(frozen=True, eq=False)
class Case:
    """A policy and a world that keeps its promises."""

    name: str
    make: Callable[[], Any]
    world: LinearWorld | ArmsWorld
    is_random: bool = False
    support: int = 0  # how many actions a mixture may have at most; 0: no mixtures
    length: int = ROUNDS

    def __str__(self) -> str:
        return self.name

    @cached_property
    def policy(self) -> Any:
        return self.make()

    @cached_property
    def rounds(self) -> list[Round]:
        """The rounds of a policy driven by hand."""
        rounds, state = [], self.policy.start()
        for round_ in range(self.length):
            actions, draw, memory = self.world.actions(round_), RandomKey(SEED, 0, round_), state.memory.tobytes()
            decision = self.policy.decide(state, actions, draw)
            outcome = self.world.outcome(decision.action, round_)
            rounds.append(Round(state, memory, actions, draw, decision, outcome))
            state = self.policy.learn(state, decision, outcome)
        return rounds

    @property
    def middle(self) -> Round:
        return self.rounds[self.length // 2]

    @property
    def learns_nothing(self) -> bool:
        return isinstance(self.policy, AlwaysSafe)

    @property
    def signs(self) -> np.ndarray:
        return self.policy.thresholds.signs


def over(cases: Iterable[Case], some: Sequence[int]) -> pytest.MarkDecorator:
    """Parametrise a contract with some cases, and in the slow lane with all of them over more rounds."""
    cases = list(cases)
    long = [replace(case, length=LONG) for case in cases]
    slow = [pytest.param(case, id=f"{case}, long", marks=(pytest.mark.slow, pytest.mark.compiled)) for case in long]
    return pytest.mark.parametrize("case", [*(pytest.param(cases[k], id=str(cases[k])) for k in some), *slow])


def assert_same(one: Decision, other: Decision) -> None:
    """Assert that two decisions are equal to the bit, and so are their tables."""
    for name in FIELDS:
        assert type(getattr(one, name)) is type(getattr(other, name)), name
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.explain() == other.explain()


class PolicyContract:
    """For every policy. Subclass it and parametrise `case`."""

    def test_deciding_changes_nothing_and_can_be_repeated(self, case: Case) -> None:
        for state, memory, actions, draw, decision, _ in case.rounds[::2]:
            assert_same(case.policy.decide(state, actions, draw), decision)
            assert state.memory.tobytes() == memory

    def test_a_policy_made_anew_decides_the_same(self, case: Case) -> None:
        fresh = case.make()
        for state, _, actions, draw, decision, _ in case.rounds[:: case.length // 10]:
            assert_same(fresh.decide(state, actions, draw), decision)

    def test_learning_returns_a_new_state_and_leaves_the_old_one(self, case: Case) -> None:
        for state, memory, _, _, decision, outcome in case.rounds:
            after = case.policy.learn(state, decision, outcome)
            assert state.memory.tobytes() == memory
            assert after is not state
            if after.memory.size:
                assert not np.shares_memory(after.memory, state.memory)

    def test_learning_moves_the_memory(self, case: Case) -> None:
        for now, then in zip(case.rounds, case.rounds[1:], strict=False):
            assert (then.memory != now.memory) == (then.state.memory.size > 0)

    def test_learning_does_not_touch_the_decision(self, case: Case) -> None:
        one = case.middle
        before = np.array(one.decision.action, copy=True)
        case.policy.learn(one.state, one.decision, one.outcome)
        assert np.array_equal(one.decision.action, before)

    def test_the_decision_knows_its_round_and_its_limits(self, case: Case) -> None:
        for round_, one in enumerate(case.rounds):
            assert one.decision.round == round_
            assert np.array_equal(one.decision.thresholds, case.policy.thresholds.values)
            assert one.decision.pessimistic_cost.shape == one.decision.thresholds.shape
            assert np.isfinite(one.decision.optimistic_reward)
            assert np.isfinite(one.decision.action).all()

    def test_only_what_is_eligible_is_played(self, case: Case) -> None:
        for round_, one in enumerate(case.rounds):
            safe = case.world.safe if isinstance(case.world, ArmsWorld) else None
            assert one.decision.action_index in {safe, *case.world.eligible(round_)}

    def test_explain_returns_a_table_with_the_limits_and_what_is_played(self, case: Case) -> None:
        for one in case.rounds[:: case.length // 10]:
            first, heads, *rows = one.decision.explain().splitlines()
            assert first.startswith(f"round {one.decision.round}: ")
            for name in case.policy.thresholds.names:
                assert name in heads
            (line,) = [row for row in rows if row.startswith("* ")]
            safe = case.world.safe if isinstance(case.world, ArmsWorld) else None
            names = [
                rf"\w+ {one.decision.action_index}\b",
                "safe action" if one.decision.action_index == safe else r"\Z",
            ]
            assert re.match(rf"\* ({'|'.join(names)})", line)
            assert (one.decision.message or "") in first

    def test_explaining_changes_nothing(self, case: Case) -> None:
        one = case.middle
        assert one.decision.explain() == one.decision.explain()
        assert one.state.memory.tobytes() == one.memory

    def test_an_agent_is_the_policy_driven_by_hand(self, case: Case) -> None:
        agent = Agent(case.make(), seed=SEED)
        for one in case.rounds:
            assert agent.state.memory.tobytes() == one.memory
            decision = agent.decide(one.actions)
            assert_same(decision, one.decision)
            agent.learn(decision, reward=one.outcome.reward, cost=one.outcome.cost)

    def test_an_agent_saved_and_loaded_goes_on_as_if_it_had_never_stopped(self, case: Case, tmp_path: Path) -> None:
        """Every third outcome comes late, so that decisions are open when the agent is saved."""
        pause, stop, wait = case.length // 3, case.length * 8 // 15, case.length // 15 * 3
        steady, stopped = Agent(case.make(), seed=SEED), Agent(case.make(), seed=SEED)
        kept: list[Decision] = []
        for round_ in range(stop):
            if round_ == pause:
                assert stopped.pending_count > 0
                stopped.save(tmp_path / "agent.json")
                stopped = Agent.load(tmp_path / "agent.json")
            kept.append(steady.decide(case.world.actions(round_)))
            assert_same(stopped.decide(case.world.actions(round_)), kept[-1])
            due = [round_] if round_ % 3 else []
            due += [round_ - wait] if round_ >= wait and round_ % 3 == 0 else []
            for late in due:
                outcome = case.world.outcome(kept[late].action, late)
                for agent in (steady, stopped):
                    agent.learn(kept[late], reward=outcome.reward, cost=outcome.cost)
            assert stopped.state.memory.tobytes() == steady.state.memory.tobytes()
            assert (stopped.pending_count, stopped.buffered_count) == (steady.pending_count, steady.buffered_count)
        assert stopped.round == steady.round == stop

    def test_the_seed_matters_where_the_policy_draws_and_nowhere_else(self, case: Case) -> None:
        """In the four rounds whose mixtures are the most even; where nothing is mixed, in the last four.

        Where nothing is drawn a few seeds show it: one that mattered would show in a hoped reward or a step at once.
        A mixture of one action, and there are problems where DOSLB never has another, leaves nothing to draw.
        """
        shares = [one.decision.probabilities for one in case.rounds]
        largest = [2.0 - t / case.length if share is None else float(share.max()) for t, share in enumerate(shares)]
        even = np.argsort(largest)[:4]
        draws_matter, observed = case.is_random and min(largest) != 1.0, set()
        for seed in range(SEED, SEED + (40 if draws_matter else 5)):
            draws = [(case.rounds[round_], RandomKey(seed, 0, int(round_))) for round_ in even]
            decisions = [case.policy.decide(one.state, one.actions, draw) for one, draw in draws]
            observed.add(tuple((d.action_index, d.step_size, d.optimistic_reward) for d in decisions))
            if len(observed) > 1:
                break
        assert (len(observed) > 1) == draws_matter

    def test_another_policys_state_is_refused(self, case: Case) -> None:
        """Kernels do not check bounds: with a memory of another size they would read and write where nothing is."""
        one = case.middle
        memory = one.state.memory
        strange = [memory[:-1], np.append(memory, 0.0), memory.reshape(1, -1), np.repeat(memory, 2)[::2]]
        strange += [np.arange(7.0), np.full(memory.size + 3, np.nan), memory.astype(np.float32), memory.tolist(), None]
        for other in [*map(PolicyState, strange), None, memory, RandomKey()]:
            if (
                isinstance(other, PolicyState)
                and isinstance(other.memory, np.ndarray)
                and other.memory.tobytes() == b""
            ):
                continue  # a policy without memory
            with refused(InvalidProblem, ErrorCode.STATE_MISMATCH):
                case.policy.decide(other, one.actions, one.draw)
            with refused(InvalidProblem, ErrorCode.STATE_MISMATCH):
                case.policy.learn(other, one.decision, one.outcome)

    def test_another_policys_decision_is_refused(self, case: Case) -> None:
        """The decision of a policy with other arms, or of another dimension."""
        one = case.middle
        for action in (999_999, -1, np.full(300, 0.1), np.full(2, 0.1), np.full((2, 3), 0.1), "arm", None, [[0]]):
            if case.learns_nothing:
                continue
            other = one.decision._replace(action=action)
            with pytest.raises((InvalidOutcome, InvalidActions)) as caught:
                case.policy.learn(one.state, other, one.outcome)
            assert caught.value.code in (ErrorCode.UNKNOWN_ACTION, ErrorCode.DIMENSION_MISMATCH)
        for wrong in (None, one.outcome, 3):
            with refused(InvalidOutcome, ErrorCode.WRONG_TYPE):
                case.policy.learn(one.state, wrong, one.outcome)
        for changed in ({"action_index": -7}, {"action_index": 0.5}, {"step_size": np.nan}, {"step_size": None}):
            with pytest.raises(InvalidOutcome):
                case.policy.learn(
                    one.state, one.decision._replace(**changed)._with(None, one.decision._offered), one.outcome
                )
        with refused(InvalidOutcome, ErrorCode.WRONG_TYPE):
            case.policy.learn(one.state, one.decision, (0.5, 0.1))
        assert one.state.memory.tobytes() == one.memory

    def test_candidates_of_another_dimension_are_refused(self, case: Case) -> None:
        one = case.middle
        if case.learns_nothing:
            return
        arms = isinstance(case.world, ArmsWorld)
        code = ErrorCode.UNSUPPORTED_ACTIONS if arms else ErrorCode.DIMENSION_MISMATCH
        for size in (2, 300):
            with refused(InvalidActions, code):
                case.policy.decide(one.state, ArmSet(size) if arms else np.ones((4, size)), one.draw)
        assert one.state.memory.tobytes() == one.memory

    def test_cached_candidates_of_another_dimension_are_refused(self, case: Case) -> None:
        one = case.rounds[0]
        if one.decision._offered is None or case.policy.cache_offered(one.state, one.decision) is one.state:
            return
        for offered in (np.ones((4, 300)), np.ones((4, 2)), np.ones(4), "rays"):
            with pytest.raises(InvalidActions):
                case.policy.learn(one.state, one.decision._replace()._with(None, offered), one.outcome)
        assert one.state.memory.tobytes() == one.memory

    def test_settings_cannot_be_changed(self, case: Case) -> None:
        with pytest.raises(AttributeError):
            case.policy.threshold = 0.99

    def test_settings_are_given_by_name(self, case: Case) -> None:
        with pytest.raises(TypeError):
            type(case.policy)(case.policy.safe_action)


class SafeContract(PolicyContract):
    """For policies that heed their limits."""

    def test_pessimistic_costs_are_within_the_limits_to_the_bit(self, case: Case) -> None:
        for one in case.rounds:
            if one.decision.message is None:
                assert np.all(case.signs * one.decision.pessimistic_cost <= case.signs * one.decision.thresholds)

    def test_true_costs_are_below_the_pessimistic_ones_and_the_limits(self, case: Case) -> None:
        for round_, one in enumerate(case.rounds):
            if one.decision.probabilities is None:
                costs = case.world.means(one.decision.action)[1:]
            else:
                costs = case.world.listed_means(round_)[1:] @ one.decision.probabilities
            assert np.all(case.signs * costs <= case.signs * one.decision.thresholds + 1e-12)
            assert np.all(case.signs * costs <= case.signs * one.decision.pessimistic_cost + 1e-12)

    def test_the_safe_action_played_alone_has_a_reason(self, case: Case) -> None:
        for one in case.rounds:
            probabilities = one.decision.probabilities
            safe = case.world.safe if isinstance(case.world, ArmsWorld) else -1
            index = one.decision.action_index
            alone = index in (None, safe) if probabilities is None else probabilities[safe] == 1.0
            assert alone == bool(one.decision.message)
            if alone:
                assert np.array_equal(one.decision.action, case.world.safe)

    def test_something_is_dared(self, case: Case) -> None:
        """Without this the rest of the contract could hold for want of anything to check."""
        assert sum(one.decision.message is None for one in case.rounds) >= case.length // 4


class RaysContract(SafeContract):
    """For policies that play one point on a ray."""

    def test_the_action_is_the_step_on_its_ray(self, case: Case) -> None:
        for round_, one in enumerate(case.rounds):
            decision, safe = one.decision, case.world.safe
            assert decision.probabilities is None
            assert 0.0 <= decision.step_size <= 1.0
            target = case.world.targets(round_)[decision.action_index] if decision.action_index is not None else safe
            assert decision.step_size == 0.0 or decision.action_index is not None
            assert np.array_equal(decision.action, (1.0 - decision.step_size) * safe + decision.step_size * target)

    def test_no_longer_step_would_be_safe(self, case: Case) -> None:
        """A step below one stands at a limit: at least one pessimistic cost is there, but for rounding."""
        for one in case.rounds:
            is_on_ray = one.decision.action_index is not None
            if is_on_ray and one.decision.step_size < 1.0 and case.policy.optimism == "inflated":
                slack = case.signs * (one.decision.thresholds - one.decision.pessimistic_cost)
                assert slack.min() < 1e-9


class MixtureContract(SafeContract):
    """For policies that draw from a mixture."""

    def test_probabilities_are_a_mixture_of_few(self, case: Case) -> None:
        for round_, one in enumerate(case.rounds):
            probabilities = one.decision.probabilities
            assert np.all(probabilities >= 0.0)
            assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
            support = set(np.flatnonzero(probabilities).tolist())
            assert len(support) <= case.support
            safe_index = case.world.safe if isinstance(case.world, ArmsWorld) else probabilities.size - 1
            assert support <= {safe_index, *case.world.eligible(round_)}

    def test_what_is_played_has_a_probability(self, case: Case) -> None:
        for round_, one in enumerate(case.rounds):
            decision = one.decision
            assert decision.step_size == 1.0
            index = -1 if decision.action_index is None else decision.action_index
            assert decision.probabilities[index] > 0.0
            if isinstance(case.world, LinearWorld):
                assert np.array_equal(decision.action, [*case.world.targets(round_), case.world.safe][index])
            else:
                assert decision.action == decision.action_index

    def test_draws_follow_the_probabilities(self, case: Case) -> None:
        """Over many seeds one decision's draws come as often as promised, within four standard deviations.

        Promised is what each seed's own decision says: a policy that samples mixes differently with each.
        """
        one = next(one for one in case.rounds if np.count_nonzero(one.decision.probabilities) > 1)
        seeds = 200
        drawn = [
            case.policy.decide(one.state, one.actions, RandomKey(seed, 0, one.draw.round)) for seed in range(seeds)
        ]
        promised = np.array([decision.probabilities for decision in drawn])
        last = promised.shape[1] - 1
        indices = [last if decision.action_index is None else decision.action_index for decision in drawn]
        shares = np.bincount(indices, minlength=promised.shape[1])
        deviation = np.sqrt((promised * (1.0 - promised)).mean(axis=0) / seeds)
        assert np.all(np.abs(shares / seeds - promised.mean(axis=0)) <= 4.0 * deviation + 1e-12)
