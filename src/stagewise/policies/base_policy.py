"""Base of all policies: `decide` and `learn`, which check their arguments once."""

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.layout import ELSEWHERE
from stagewise.policies.policy import PlayedAction, State
from stagewise.problem.checks import LARGEST, check_integer_at_least, check_number, check_outcome
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import FIRST, RandomKey

EVERY, REWARD, NOTHING = "every signal", "the reward", "nothing"


class BasePolicy:
    """Base of all policies: `decide` and `learn` check their arguments; `choose` and `learn_in_place` do not.

    Kernels do not check bounds, so the state or decision of another policy would corrupt memory.
    """

    thresholds: Thresholds
    delta: float
    split_delta: bool = True  # δ is divided among the signals

    # Read by simulations, certificates and theorems.
    mixes: ClassVar[bool] = False  # its limits hold for mixtures, and regret is relative to the best mixture
    learns: ClassVar[str] = EVERY  # the signals that it has intervals of
    theorem: ClassVar[str] = (
        ""  # the theorem with explicit constants that bounds its regret: "rays", "mixtures" or "arms"
    )

    # Read by agents.
    reward_name: str = "reward"
    reward_span: tuple[float, float] = (0.0, 1.0)  # the low end and the length of its range, in the user's units
    names: Sequence[str] | None = None  # names of the actions, or None
    separate_models: bool = False  # every signal has its own model; NaN stands for signals that have not arrived
    problem: Any = None  # the `Problem` that it plays, or None
    has_parts: ClassVar[bool] = False  # its memory consists of model blocks with diagnostics (`models.diagnostics`)

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

    @abstractmethod
    def start(self) -> State:
        """Return the state before any outcome.

        Returns:
            A state for `decide` and `learn`.
        """

    @abstractmethod
    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        """Choose among the actions; the state is trusted."""

    @abstractmethod
    def learn_in_place(self, state: State, played: PlayedAction, values: Floats) -> State:
        """Learn the reward and the signed costs (1 + m,) of a played action, in place where possible."""

    @abstractmethod
    def check_logged_actions(self, actions: Any) -> Floats | Ints:
        """Return logged actions, one per row, or raise InvalidActions."""

    def decide(self, state: State, actions: Any, draw: RandomKey = FIRST) -> Decision:
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

    def learn(self, state: State, decision: Decision, outcome: Outcome) -> State:
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
        before = State(self.check_state(state).memory.copy())
        if not isinstance(decision, Decision):
            raise InvalidOutcome(
                ErrorCode.WRONG_TYPE,
                "the decision is {decision}; it must be a result of this policy's decide",
                decision=safe_repr(decision),
            )
        if not isinstance(outcome, Outcome):
            raise InvalidOutcome(
                ErrorCode.WRONG_TYPE,
                "the outcome is {outcome}; it must be an Outcome, with a reward and a cost",
                outcome=safe_repr(outcome),
            )
        played, values = (
            self.check_played(PlayedAction.from_decision(decision)),
            self.values(outcome.reward, outcome.cost),
        )
        return self.learn_in_place(self.cache_offered(before, decision), played, values)

    def learn_log(self, state: State, actions: Floats | Ints, values: Sequence[Floats] | Floats) -> State:
        """Learn a log as one batch: actions as `check_logged_actions` returns them, and their values (1 + m,)."""
        for action, row in zip(actions, values, strict=True):
            state = self.learn_in_place(state, PlayedAction(action), row)
        return state

    def cache_offered(self, state: State, decision: Decision) -> State:
        """Return a state that caches the candidates of a decision, in place where possible."""
        return state

    def check_state(self, state: State) -> State:
        """Return a state of this policy, or raise InvalidProblem."""
        memory: Any = getattr(state, "memory", None)
        is_array = isinstance(memory, np.ndarray) and memory.dtype == np.float64 and memory.flags.c_contiguous
        if not is_array or not self.fits(memory):
            what = (
                f"a memory of shape {memory.shape}"
                if is_array
                else f"{type(state).__name__} without a float64 array as memory"
            )
            raise InvalidProblem(
                ErrorCode.STATE_MISMATCH,
                "the state is {what}, which does not belong to this {name}; give a result of its own start or learn",
                what=what,
                name=type(self).__name__,
            )
        return state

    def check_played(self, played: PlayedAction) -> PlayedAction:
        """Return an action that this policy can have played, or raise InvalidOutcome."""
        action = played.action.tolist() if isinstance(played.action, np.ndarray) else played.action
        try:
            row = self.check_logged_actions([played.action])[0]
        except InvalidActions as error:
            kind = type(self).__name__
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_ACTION,
                "the played action {action} is not an action of this {type}: {error}",
                action=safe_repr(action),
                type=kind,
                error=error,
            ) from None
        ray = check_integer_at_least(played.ray, "the index", ELSEWHERE, InvalidOutcome)
        return PlayedAction(
            row,
            min(ray, 2**62),
            check_number(played.step, "the step", InvalidOutcome),
            self.check_round_safe_action(played.safe),
        )

    def check_round_safe_action(self, of_round: RoundSafeAction | None) -> RoundSafeAction | None:
        """Return the safe action of a played round; None: it is the same in every round."""
        return None

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the reward and the costs (1 + m,) as they are learned: finite, costs signed so that less is better.

        A subclass can reject only values outside a range of each signal: of a large frame, only the rows with the
        smallest and the largest value of each signal are checked here.
        """
        signs = self.thresholds.signs
        m = signs.size
        values = np.empty(1 + m)
        if type(reward) is float and type(cost) is float and m == 1 and abs(reward) < LARGEST and abs(cost) < LARGEST:
            values[0], values[1] = reward, signs.item(0) * cost  # an array from a list would take twice as long
            return values
        if (
            type(reward) is float
            and type(cost) is list
            and len(cost) == m
            and all(map(is_plain_float, (reward, *cost)))
        ):
            values[0], values[1:] = reward, cost
            values[1:] *= signs
            return values
        values[0] = check_outcome(reward, "the reward")
        if m:
            if cost is None:
                raise InvalidOutcome(
                    ErrorCode.OUTCOME_MISSING,
                    "the cost is missing; it is needed for {names}",
                    names=", ".join(self.thresholds.names),
                )
            values[1:] = self.thresholds.signs * self.thresholds.costs(cost)
        return values

    def encode_outcome(self, signals: Mapping[str, Any]) -> Floats | None:
        """Return the values (1 + m,) of an outcome by name; None where it is incomplete or needs the slower checks.

        The slower checks raise the errors.
        """
        try:
            outcome = [to_plain_float(signals[name]) for name in self.signal_names]
            return self.values(outcome[0], outcome[1:])
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
    def placeholder_values(self) -> list[float]:
        """Valid values (1 + m,) for signals that were not given."""
        return [0.0] * (1 + self.thresholds.signs.size)

    @property
    def display_thresholds(self) -> Thresholds:
        """The thresholds in the user's units."""
        return self.thresholds

    def format_mean(self, signal: int, signed: float) -> str:
        """Return a signed mean of a signal as text, in the user's units."""
        return f"{self.to_user_units(signal, signed):.3g}"

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
        if safe.arm is not None:
            return int(safe.arm), int(safe.arm), 1.0
        return safe.features.copy(), -1, 0.0

    def without_watch(self) -> Self:
        """Return the same policy without the tests of its assumptions."""
        return dataclasses.replace(self, check_assumptions=False)  # type: ignore[type-var]

    def fits(self, memory: Floats) -> bool:
        """Return whether a memory can belong to this policy."""
        return memory.shape == self.start().memory.shape


def is_plain_float(value: Any) -> bool:
    """Return whether a value is a finite Python float that needs no further check."""
    return type(value) is float and abs(value) < LARGEST


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
            raise InvalidOutcome(
                ErrorCode.OUTCOME_OUT_OF_RANGE,
                "the {name!r} is {value}, outside [0, 1]; {why}",
                name=name,
                value=value,
                why=why,
            )
