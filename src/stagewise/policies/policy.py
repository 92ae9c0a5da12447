"""The policy protocol, `start`, `decide` and `learn`, and what the rest of stagewise reads of its own policies."""

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.layout import AT_SAFE, ELSEWHERE
from stagewise.engine.model import RoundSpec
from stagewise.policies.rounds import NEW, Rounds
from stagewise.problem.checks import (
    LARGEST,
    check_integer_at_least,
    check_number,
    check_outcome,
    find_missing_attributes,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import FIRST, RandomKey

EVERY, REWARD, NOTHING = "every signal", "the reward", "nothing"  # what a policy learns


class PolicyState(NamedTuple):
    """The state of a policy: what it has learned.

    Attributes:
        memory: One array of floats; its layout belongs to the policy.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.UCB(arms=2)
        >>> isinstance(policy.start(), PolicyState)
        True
    """

    memory: Floats


class PlayedAction(NamedTuple):
    """A played action and its position among the cached candidates."""

    action: Any  # features or arm
    ray: int = ELSEWHERE  # the index of its ray; AT_SAFE: the safe action
    step: float = 1.0
    safe: RoundSafeAction | None = None  # the safe action of its round, where the round named it

    @property
    def _position(self) -> int:
        return self.ray

    @classmethod
    def from_decision(cls, decision: Decision) -> "PlayedAction":
        """Return the played action of a decision; without a position where its candidates are not cached."""
        if decision._uncached:
            return cls(decision[0])
        index = decision.action_index
        return NEW(cls, (decision[0], AT_SAFE if index is None else index, decision.step_size, decision._safe))


class Policy(Protocol):
    """The protocol of a policy: settings and three pure functions of a state.

    Agents and simulations accept any object with these methods.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.UCB(arms=2)
        >>> decision = policy.decide(policy.start(), sw.ArmSet(2))
        >>> state = policy.learn(policy.start(), decision, sw.Outcome(1.0))
    """

    def start(self) -> Any:
        """Return the state before any outcome.

        Returns:
            A state of any type.
        """

    def decide(self, state: Any, actions: Any, draw: RandomKey = FIRST) -> Decision:
        """Choose among the actions; equal arguments give equal decisions.

        Args:
            state: A result of `start` or `learn`; it does not change.
            actions: The actions of the round.
            draw: The source of random numbers.

        Returns:
            The decision.
        """

    def learn(self, state: Any, decision: Decision, outcome: Outcome) -> Any:
        """Return the state after the outcome of a decision.

        Args:
            state: A result of `start` or `learn`; it does not change.
            decision: A result of `decide`.
            outcome: The observed reward and costs.

        Returns:
            The new state.
        """


def check_policy_protocol(policy: Any) -> None:
    """Raise InvalidProblem for an object that is not a policy."""
    if isinstance(policy, type) or find_missing_attributes(policy, ("start", "decide", "learn")):
        rule = "a Problem (Problem.load reads a file), a policy, or an object with start, decide and learn"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "policy", policy, rule)


class BasePolicy:
    """Base of all policies, and what agents, simulations, the server and reports read of them.

    `decide` and `learn` check their arguments, since kernels check no bounds: the state or the decision of another
    policy would corrupt memory. A policy with `rounds` defines `choose` and `check_logged_actions`; one without
    defines `start`, `fits` and `learn_in_place` too.
    """

    rounds: Rounds  # its models and rule as kernels, its layout and settings
    thresholds: Thresholds
    delta: float
    split_delta: bool = True  # δ is divided among the signals

    # Read by simulations, certificates and theorems.
    mixes: ClassVar[bool] = False  # its limits hold for mixtures, and regret is relative to the best mixture
    learns: ClassVar[str] = EVERY  # the signals that it has intervals of
    theorem: ClassVar[str] = ""  # the theorem that bounds its regret explicitly: "rays", "mixtures" or "arms"

    # Read by agents.
    reward_name: str = "reward"
    reward_span: tuple[float, float] = (0.0, 1.0)  # the low end and the length of its range, in the user's units
    names: Sequence[str] | None = None  # names of the actions, or None
    first_reported: int = 0  # the first signal whose outcomes are reported
    separate_models: bool = False  # every signal has its own model; NaN stands for signals that have not arrived
    row_width: int | None = None  # the numbers of an action's row, which alone tells what was played; None: objects do
    problem: Any = None  # the `Problem` that it plays, or None
    needs_times: bool = False  # a mean drifts, so that every decision has a time
    has_parts: ClassVar[bool] = True  # its memory consists of model blocks with diagnostics (`models.diagnostics`)
    value_type: ClassVar[Any] = np.float64  # of an outcome's values
    why_unit_range: str = ""  # why outcomes must lie in [0, 1], and what to do; empty: they need not

    @property
    def is_optimistic(self) -> bool:
        """Whether `optimistic_reward` is at least the optimum with probability 1 − δ; not for directional mixtures."""
        is_cut_back = self.mixes and getattr(self, "optimism", "") == "directional"
        return self.learns != NOTHING and not is_cut_back

    @property
    def interval_shares(self) -> tuple[float, ...]:
        """The share of δ of each signal's intervals: the reward, then every cost that has intervals."""
        if self.learns != EVERY:
            return (float(self.delta),) if self.learns == REWARD else ()
        signals = 1 + int(self.thresholds.values.size)
        return (float(self.delta) / (signals if self.split_delta else 1),) * signals

    @property
    def requires_unit_range(self) -> bool:
        """Whether outcomes must lie in [0, 1]."""
        return bool(self.why_unit_range)

    @abstractmethod
    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        """Choose among the actions; the state is trusted."""

    @abstractmethod
    def check_logged_actions(self, actions: Any) -> Floats | Ints:
        """Return logged actions, one per row, or raise InvalidActions."""

    def start(self) -> PolicyState:
        """Return the state before any outcome.

        Returns:
            A state for `decide` and `learn`.
        """
        return PolicyState(self.rounds.start())

    def decide(self, state: PolicyState, actions: Any, draw: RandomKey = FIRST) -> Decision:
        """Choose among the actions; equal arguments give equal decisions.

        Args:
            state: A result of this policy's `start` or `learn`; it does not change.
            actions: The actions of the round.
            draw: The source of random numbers.

        Returns:
            The decision.

        Raises:
            InvalidActions: The policy cannot use these actions.
            InvalidProblem: The state belongs to another policy.
        """
        return self.choose(self.check_state(state), actions, draw)

    def learn(self, state: PolicyState, decision: Decision, outcome: Outcome) -> PolicyState:
        """Return the state after the outcome of a decision; the old state does not change.

        Args:
            state: A result of this policy's `start` or `learn`.
            decision: A result of this policy's `decide`.
            outcome: The observed reward and costs.

        Returns:
            The new state.

        Raises:
            InvalidOutcome: The decision or the outcome is invalid.
            InvalidProblem: The state belongs to another policy.
        """
        before = PolicyState(self.check_state(state).memory.copy())
        if not isinstance(decision, Decision):
            rule = "a result of this policy's decide"
            raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "the decision", decision, rule)
        if not isinstance(outcome, Outcome):
            rule = "an Outcome, with a reward and a cost"
            raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "the outcome", outcome, rule)
        played = self.check_played(PlayedAction.from_decision(decision))
        values = self.values(outcome.reward, outcome.cost)
        return self.learn_in_place(self.cache_offered(before, decision), played, values)

    def get_played(self, decision: Decision) -> Any:
        """Return what `learn_in_place` needs to know of a decision."""
        return PlayedAction.from_decision(decision)

    def check_outcome(self, state: PolicyState, played: Any, values: Any) -> None:
        """Raise where values cannot be learned; a policy of stagewise checks them when they are read."""

    def learn_in_place(self, state: PolicyState, played: PlayedAction, values: Floats) -> PolicyState:
        """Learn the reward and the signed costs (1 + m,) of a played action, in place where there is room."""
        (_, _, step, safe), before = played, state.memory
        features, index = self.locate(played)
        arrays = None if safe is None else self.get_round_arrays(safe)
        memory = self.rounds.learn(before, features, index, step, values, arrays)
        return state if memory is before else PolicyState(memory)

    def learn_log(self, state: PolicyState, actions: Any, values: Sequence[Floats] | Floats) -> PolicyState:
        """Learn a log as one batch: actions as `check_logged_actions` returns them, and their values (1 + m,)."""
        features, indices = self.locate_rows(actions)
        return PolicyState(self.rounds.learn_log(state.memory, features, indices, np.array(values)))

    def locate(self, played: PlayedAction) -> tuple[Floats, int]:
        """Return the features and the index of a played action."""
        return played.action, played.ray

    def locate_rows(self, actions: Any) -> tuple[Floats, Ints]:
        """Return the features (n, d) of logged actions and their indices, which are unknown."""
        return actions, np.full(len(actions), ELSEWHERE)

    def cache_offered(self, state: PolicyState, decision: Decision) -> PolicyState:
        """Return a state that caches the first candidates that are offered, until others are."""
        if decision._offered is None:
            return state
        offered: Any = self.check_logged_actions(decision._offered)
        return PolicyState(self.rounds.cache(self.check_state(state).memory, offered))

    def check_state(self, state: PolicyState) -> PolicyState:
        """Return a state of this policy, or raise InvalidProblem."""
        memory: Any = getattr(state, "memory", None)
        is_array = isinstance(memory, np.ndarray) and memory.dtype == np.float64 and memory.flags.c_contiguous
        if not is_array or not self.fits(memory):
            what = type(state).__name__ + " without a float64 array as memory"
            what = f"a memory of shape {memory.shape}" if is_array else what
            raise InvalidProblem(
                ErrorCode.STATE_MISMATCH,
                "the state is {what}, which does not belong to this {kind}; give a result of its own start or learn",
                what=what,
                kind=type(self).__name__,
            )
        return state

    def fits(self, memory: Floats) -> bool:
        """Return whether a memory can belong to this policy."""
        return self.rounds.fits(memory)

    def check_played(self, played: PlayedAction) -> PlayedAction:
        """Return an action that this policy can have played, or raise InvalidOutcome."""
        action = played.action.tolist() if isinstance(played.action, np.ndarray) else played.action
        try:
            row = self.check_logged_actions([played.action])[0]
        except InvalidActions as error:
            template = "the played action {action} is not an action of this {type}: {error}"
            data = {"action": safe_repr(action), "type": type(self).__name__, "error": error}
            raise InvalidOutcome(ErrorCode.UNKNOWN_ACTION, template, **data) from None
        ray = min(check_integer_at_least(played.ray, "the index", ELSEWHERE, InvalidOutcome), 2**62)
        step = check_number(played.step, "the step", InvalidOutcome)
        return PlayedAction(row, ray, step, self.check_round_safe_action(played.safe))

    def check_round_safe_action(self, of_round: RoundSafeAction | None) -> RoundSafeAction | None:
        """Return the safe action of a played round; None: it is the same in every round."""
        return None

    # Read by compiled loops.

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec of compiled loops on these actions; None: they cannot play them."""
        return self.rounds.spec

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        """Return layout and settings for a dimension."""
        return self.rounds.layout, self.rounds.settings

    @property
    def layout(self) -> Ints:
        """The integers that its kernels read (`engine.layout`)."""
        return self.rounds.layout

    @property
    def settings(self) -> Floats:
        """The numbers that its kernels read (`engine.layout`)."""
        return self.rounds.settings

    def build_run_memory(
        self, offered: Any, features: Floats, fresh: bool, learned: PolicyState | None = None
    ) -> Floats:
        """Return the initial memory of a compiled run; raise the same errors as `decide`."""
        self.get_round_safe_action(self.check_actions(offered))
        return self.rounds.start_run(None if learned is None else learned.memory, features, fresh)

    def check_actions(self, listed: Any) -> Any:
        """Return the action set, or raise InvalidActions where this policy cannot use it."""
        return listed

    def get_round_safe_action(self, listed: Any) -> RoundSafeAction | None:
        """Return the safe action that a set names, with its declared values; None: it is the same in every round."""
        return None

    def get_round_arrays(self, of_round: RoundSafeAction) -> tuple[Ints, Floats]:
        """Return layout and settings of a round that names its safe action."""
        raise NotImplementedError

    # Signals: as users know them, and as they are learned.

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the reward and the costs (1 + m,) as they are learned: finite, costs signed so that less is better.

        A policy can reject only values outside a range of each signal: of a large frame, only the rows with the
        smallest and the largest value of each signal are checked here.
        """
        signs = self.thresholds.signs
        m = signs.size
        values = np.empty(1 + m)
        if type(reward) is float and type(cost) is float and m == 1 and abs(reward) < LARGEST and abs(cost) < LARGEST:
            values[0], values[1] = reward, signs.item(0) * cost  # an array from a list would take twice as long
        else:
            values[0] = check_outcome(reward, "the reward")
            if m:
                if cost is None:
                    names = ", ".join(self.thresholds.names)
                    text = "the cost is missing; it is needed for {names}"
                    raise InvalidOutcome(ErrorCode.OUTCOME_MISSING, text, names=names)
                values[1:] = signs * self.thresholds.costs(cost)
        if self.why_unit_range:
            check_unit_range(values, self.thresholds, self.why_unit_range)
        return values

    def encode_outcome(self, signals: Mapping[str, Any]) -> Floats | None:
        """Return the values (1 + m,) of an outcome by name; None where it is incomplete or needs the slower checks.

        The slower checks raise the errors.
        """
        try:
            outcome = [to_plain_float(signals[name]) for name in self.signal_names]
            return self.values(outcome[0], outcome[1] if len(outcome) == 2 else outcome[1:])
        except (LookupError, TypeError, OverflowError, InvalidOutcome):
            return None

    @cached_property
    def signal_names(self) -> tuple[str, ...]:
        """The names of all signals, the reward's first."""
        return self.reward_name, *self.thresholds.names

    def decode_outcome(self, values: Floats) -> list[float]:
        """Return the outcome that `values` encoded, in the user's units."""
        return [float(values[0]), *self.thresholds.to_user_units(values[1:]).tolist()]

    @property
    def placeholder_values(self) -> list[Any]:
        """Valid values (1 + m,) for signals that were not given."""
        return [0.0] * (1 + self.thresholds.signs.size)

    @property
    def display_thresholds(self) -> Thresholds:
        """The thresholds in the user's units."""
        return self.thresholds

    def to_user_units(self, signal: int, signed: float) -> float:
        """Return a signed mean of a signal in the user's units."""
        low, length = self.reward_span
        return self.display_thresholds.to_user_unit(signal - 1, signed) if signal else low + length * signed

    def describe_action(self, index: int, word: str = "action") -> str:
        """Return the name of a listed action for messages."""
        return f"{word} {index}" if self.names is None else repr(self.names[index])

    def get_safe_action(self, decision: Decision) -> tuple[Any, int, float]:
        """Return the safe action of a decision's round, its index and its step."""
        safe: Any = self.safe_action  # type: ignore[attr-defined]
        return (safe.features.copy(), -1, 0.0) if safe.arm is None else (int(safe.arm), int(safe.arm), 1.0)

    def at_time(self, actions: Any, seconds: float) -> Any:
        """Return what a call offers at the time of its decision; only policies that need times use it."""
        return actions

    def without_watch(self) -> Self:
        """Return the same policy without the tests of its assumptions."""
        return dataclasses.replace(self, check_assumptions=False)  # type: ignore[type-var]


def to_plain_float(value: Any) -> float:
    """Return a Python number or boolean as a float; raise TypeError for anything else."""
    if type(value) is float or type(value) is bool or type(value) is int:
        return float(value)
    raise TypeError


def check_unit_range(values: Floats, thresholds: Thresholds, why: str) -> None:
    """Raise InvalidOutcome for signed outcomes (1 + m,) outside [0, 1] in the user's direction."""
    outcomes = values.tolist() if thresholds._all_at_most else (values[0], *thresholds.to_user_units(values[1:]))
    for signal, value in enumerate(outcomes):
        if not 0.0 <= value <= 1.0:
            name = thresholds.names[signal - 1] if signal else "reward"
            text = "the {name!r} is {value}, outside [0, 1]; {why}"
            raise InvalidOutcome(ErrorCode.OUTCOME_OUT_OF_RANGE, text, name=name, value=value, why=why)
