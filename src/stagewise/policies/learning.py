"""The verbs that all policies share, and what they are given: a state, a decision, an outcome, each checked once."""

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.signals.ridge import ELSEWHERE
from stagewise.policies.policy import Played, State
from stagewise.problem.checks import LARGEST, number, observed, shown, whole_at_least
from stagewise.problem.errors import InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.renamed import refuse_old
from stagewise.problem.round_safe import SafeOfRound
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import FIRST, Draw
from stagewise.records.outcome import Outcome

EVERY, REWARD, NOTHING = "every signal", "the reward", "nothing"


class Learning:
    """The verbs `decide` and `learn` check what they are given; `choose` and `learn_in_place` trust it, for agents.

    Kernels do not check bounds: another policy's state or decision would make them read and write where nothing is.
    """

    thresholds: Thresholds
    delta: float
    share_delta: bool = True  # δ is divided among the signals

    # What judges, certificates and theorems ask of a policy; a subclass answers alike where it says nothing else.
    mixes: ClassVar[bool] = False  # its limits hold for mixtures, and regret is against the best one
    learns: ClassVar[str] = EVERY  # what it has intervals of
    theorem: ClassVar[str] = ""  # which bounds its regret with explicit constants: "rays", "mixtures" or "arms"

    # What an agent asks: in whose words outcomes are given, and whether signals may be learned one by one.
    reward_name: str = "reward"
    reward_span: tuple[float, float] = (0.0, 1.0)  # in the user's units: where its range begins, and its length
    names: Sequence[str] | None = None  # of the actions, where they have some
    apart: bool = False  # every signal has a part of its own, and is learned alone: NaN stands for those not in yet
    problem: Any = None  # the problem that it plays, by name
    has_parts: ClassVar[bool] = False  # its memory is made of parts, which answer the watch (`models.answers`)

    gone: ClassVar[Mapping[str, str]] = {}  # settings that it had before, and what became of them

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        refuse_old(cls, settings)
        return super().__new__(cls)

    @property
    def hopes(self) -> bool:
        """Whether a decision's `hoped` is promised to be at least the optimum; a mixture that came back hopes less."""
        came_back = self.mixes and getattr(self, "optimism", "") == "directional"
        return self.learns != NOTHING and not came_back

    @property
    def interval_shares(self) -> tuple[float, ...]:
        """How much of δ the intervals of each signal take: the reward's, then every cost's that it has intervals of."""
        if self.learns != EVERY:
            return (float(self.delta),) if self.learns == REWARD else ()
        signals = 1 + int(self.thresholds.values.size)
        return (float(self.delta) / (signals if self.share_delta else 1),) * signals

    @abstractmethod
    def start(self) -> State:
        """Return the memory of a policy that has seen nothing."""

    @abstractmethod
    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Choose among the actions, from a state of this policy's own."""

    @abstractmethod
    def learn_in_place(self, state: State, played: Played, values: Floats) -> State:
        """Take in the reward and the signed costs (1 + m,) seen with an action of its own, in place where possible."""

    @abstractmethod
    def logged(self, actions: Any) -> Floats | Ints:
        """Return logged actions, one a row, or refuse them."""

    def decide(self, state: State, actions: Any, draw: Draw = FIRST) -> Decision:
        """Choose among the actions; equal arguments give equal decisions."""
        return self.choose(self.own(state), actions, draw)

    def learn(self, state: State, decision: Decision, outcome: Outcome) -> State:
        """Return the memory after the decision's outcome was seen; the old one stays as it was."""
        before = State(self.own(state).memory.copy())
        if not isinstance(decision, Decision):
            raise InvalidOutcome(
                f"the decision is {shown(decision)}; it must be one that this policy's decide returned"
            )
        if not isinstance(outcome, Outcome):
            raise InvalidOutcome(f"the outcome is {shown(outcome)}; it must be an Outcome, with a reward and a cost")
        played, values = self.made(Played.by(decision)), self.values(outcome.reward, outcome.cost)
        return self.learn_in_place(self.follow(before, decision), played, values)

    def learn_log(self, state: State, actions: Floats | Ints, values: Sequence[Floats] | Floats) -> State:
        """Take in a log as one batch: actions as `logged` returns them, and for each the values (1 + m,)."""
        for action, seen in zip(actions, values, strict=True):
            state = self.learn_in_place(state, Played(action), seen)
        return state

    def follow(self, state: State, decision: Decision) -> State:
        """Return a memory that is prepared to see a decision's candidates again, in place where possible."""
        return state

    def own(self, state: State) -> State:
        """Return a state that can be this policy's, or refuse it."""
        memory: Any = getattr(state, "memory", None)
        plain = isinstance(memory, np.ndarray) and memory.dtype == np.float64 and memory.flags.c_contiguous
        if not plain or not self.fits(memory):
            what = f"a memory of shape {memory.shape}" if plain else f"{type(state).__name__} without a plain memory"
            raise InvalidProblem(
                f"the state is {what}, which is not this {type(self).__name__}'s; "
                "give one that its own start or learn returned"
            )
        return state

    def made(self, played: Played) -> Played:
        """Return what this policy can have played, or refuse it."""
        action = played.action.tolist() if isinstance(played.action, np.ndarray) else played.action
        try:
            row = self.logged([played.action])[0]
        except InvalidActions as error:
            kind = type(self).__name__
            raise InvalidOutcome(f"{shown(action)} was played, which is no action of this {kind}: {error}") from None
        ray = whole_at_least(played.ray, "the index", ELSEWHERE, InvalidOutcome)
        return Played(
            row, min(ray, 2**62), number(played.step, "the step", InvalidOutcome), self.safe_played(played.safe)
        )

    def safe_played(self, of_round: SafeOfRound | None) -> SafeOfRound | None:
        """Return the safe action of a round that this policy has played; None: its safe action is always the same."""
        return None

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the reward and the costs (1 + m,) as they are learned from: finite, signed so that less is better.

        A subclass may refuse what lies outside a range of each signal, and nothing else: of a frame with a million rows
        only those with the least and the largest of each signal are shown to it.
        """
        signs = self.thresholds.signs
        m = signs.size
        values = np.empty(1 + m)
        if type(reward) is float and type(cost) is float and m == 1 and abs(reward) < LARGEST and abs(cost) < LARGEST:
            values[0], values[1] = reward, signs.item(0) * cost  # an array from a list would take twice as long
            return values
        if type(reward) is float and type(cost) is list and len(cost) == m and all(map(plainly, (reward, *cost))):
            values[0], values[1:] = reward, cost
            values[1:] *= signs
            return values
        values[0] = observed(reward, "the reward")
        if m:
            if cost is None:
                raise InvalidOutcome(f"the cost is missing; it is needed for {', '.join(self.thresholds.names)}")
            values[1:] = self.thresholds.signs * self.thresholds.costs(cost)
        return values

    def told(self, signals: Mapping[str, Any]) -> Floats | None:
        """Return the values (1 + m,) of an outcome that is given by name, where it is whole and plain; else nothing.

        What it does not take is looked at more closely elsewhere, and may be refused there in words.
        """
        try:
            seen = [plain_number(signals[name]) for name in self.signal_names]
            return self.values(seen[0], seen[1:])
        except (LookupError, TypeError, OverflowError, InvalidOutcome):
            return None

    @cached_property
    def signal_names(self) -> tuple[str, ...]:
        """The names of all signals, the reward's first."""
        return self.reward_name, *self.thresholds.names

    def given(self, values: Floats) -> list[float]:
        """Return values as somebody gave them: what `values` takes for them."""
        return [float(values[0]), *self.thresholds.in_units(values[1:]).tolist()]

    @property
    def blank(self) -> list[float]:
        """Values (1 + m,) that the signals can have, for those that were not given."""
        return [0.0] * (1 + self.thresholds.signs.size)

    @property
    def presented(self) -> Thresholds:
        """The thresholds in the units that people are shown."""
        return self.thresholds

    def in_words(self, signal: int, signed: float) -> str:
        """Return a mean of a signal, signed so that less is better, as a sentence holds it: in the user's units."""
        return f"{self.in_units(signal, signed):.3g}"

    def in_units(self, signal: int, signed: float) -> float:
        """Return a mean of a signal, signed so that less is better, in the user's units."""
        low, length = self.reward_span
        return self.presented.in_unit(signal - 1, signed) if signal else low + length * signed

    def called(self, index: int, word: str = "action") -> str:
        """Return what a sentence calls a listed action."""
        return f"{word} {index}" if self.names is None else repr(self.names[index])

    def safe_in(self, decision: Decision) -> tuple[Any, int, float]:
        """Return the safe action of a decision's round, its index and its step."""
        safe: Any = self.safe_action  # type: ignore[attr-defined]
        if safe.arm is not None:
            return int(safe.arm), int(safe.arm), 1.0
        return safe.features.copy(), -1, 0.0

    def unwatched(self) -> Self:
        """Return the same policy without the watch."""
        return dataclasses.replace(self, watch=False)  # type: ignore[type-var]

    def fits(self, memory: Floats) -> bool:
        """Say whether a memory can be this policy's."""
        return memory.shape == self.start().memory.shape


def plainly(value: Any) -> bool:
    """Say whether a value is a float that needs no further look."""
    return type(value) is float and abs(value) < LARGEST


def plain_number(value: Any) -> float:
    """Return a number or a truth value of Python's own; anything else is left to those who look closely."""
    if type(value) is float or type(value) is bool or type(value) is int:
        return float(value)
    raise TypeError


def check_unit_range(values: Floats, thresholds: Thresholds, why: str) -> None:
    """Refuse signed outcomes (1 + m,) that lie outside [0, 1] in the user's own direction."""
    told = values.tolist() if thresholds._all_at_most else (values[0], *thresholds.in_units(values[1:]))
    for place, value in enumerate(told):
        if not 0.0 <= value <= 1.0:
            name = thresholds.names[place - 1] if place else "reward"
            raise InvalidOutcome(f"the {name!r} is {value}, outside [0, 1]; {why}")
