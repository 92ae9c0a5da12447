"""CAPS over actions in a context: what is done for this user, each signal with a model of its own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import DECLARED, FOLLOWED, HOME, NEVER, ROOM
from stagewise.kernels.loop.memory import grow, memory_kernels_for
from stagewise.kernels.loop.round import EVERY, MIXTURE, Form
from stagewise.kernels.signals.cells import before_full, in_order, meet, most_met
from stagewise.models.arms import end_shares, lows_of
from stagewise.models.context import NOISE, Signal, SignalModel, action_shares
from stagewise.models.part import Modelled
from stagewise.policies.baseline import armed, check_safe_range
from stagewise.policies.ceilings import ceilings_of
from stagewise.policies.certified import Certified
from stagewise.policies.compiled import MEMORY_SIZE, aligned, assembled, fitting_memory, starting
from stagewise.policies.learning import check_unit_range
from stagewise.policies.linear import natural
from stagewise.policies.mixtures import PROPOSED, decision_from
from stagewise.policies.policy import State
from stagewise.policies.rays import own
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import keep, probability, promise_numbers, settle
from stagewise.problem.action_set import ALL, Flags
from stagewise.problem.actions import Finite
from stagewise.problem.checks import MOST, array, number, one_of, positive, shown, size_of, whole
from stagewise.problem.context import LARGEST_SEGMENT, Context
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, resolved, safe_costs
from stagewise.problem.words import several
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

GROW, IN_ORDER = named(grow), named(in_order)
FIRST_ROOM = 8  # segments that a new memory has room for


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextCAPS(Certified, SafePolicy):
    """Certified posterior sampling over actions in a context: the mixture of every round has its costs in check.

    The safe action is one of the actions, `SafeAction(arm=…)`: what is done today, for this user. Its `cost` bounds its
    mean costs for every user, its `reward` is the least that its mean reward is. Every outcome lies in [0, 1]. Every
    signal has a model of its own: linear in the context with parameters for every action, or a rate for every action,
    by segment where that is said (docs/theory/context-models.md).

    >>> policy = ContextCAPS(
    ...     actions=3, context=2, safe_action=SafeAction(arm=0, reward=0.0, cost=0.001), threshold={"opt_out": 0.02}
    ... )
    >>> decision = policy.decide(policy.start(), Context([0.3, 0.1]))
    >>> decision.index, decision.dearest
    (0, array([0.001]))
    """

    actions: int
    """How many actions there are, the safe one among them."""
    context: int = 0
    """How many numbers are known about a user, each in [−1, 1]; a constant is added to them."""
    segments: int = 0
    """In how many ways users are divided into segments."""
    by: Mapping[str, int] | None = None
    """By which division a signal's rates are kept; a signal that is not named has one rate for each action."""
    reward_model: SignalModel = "linear"
    """How the mean reward depends on user and action."""
    cost_model: SignalModel | Mapping[str, SignalModel] = "rates"
    """How mean costs do; one for all, or one for each."""
    norm_bound: float = 1.0
    """S: the norm of every action's parameter, where a signal is linear."""
    ridge: float | None = None
    """λ of the regressions; None: n R²/S²."""
    launched: int | None = None
    """How many actions there were when learning began; those that came later take what was kept back of δ."""
    expected: Mapping[str, float] | None = None
    """Around which mean a cost's sets are sharpest; None: its limit. A limit that is changed later keeps the first."""
    share_delta: bool = field(init=False, default=True)

    decides: ClassVar[type[Decision]] = Decision  # what its decisions are
    form: ClassVar[Form] = Form(apiece=1, cells=1, rule=MIXTURE, sampled=EVERY, apart=1)  # one for all models
    mixes: ClassVar[bool] = True
    log_hint: ClassVar[str] = ""  # another way to give a log

    def __post_init__(self) -> None:
        keep(self)
        actions = size_of(self.actions, "actions")
        safe = armed(self.safe_action, actions)
        thresholds = resolved(self.threshold, safe)
        whole(self.context, "context", f"from 0 to {MOST}", 0, MOST)
        whole(self.segments, "segments", "from 0 to 64", 0, 64)
        check_safe_range(safe, thresholds, "rescale")
        ceilings = ceilings_of(thresholds, self.cost_bound, 0.0)
        promise = promise_numbers(thresholds, ceilings, None, 1.0, self.watch)
        settle(self, thresholds=thresholds)
        last = self.certificate_numbers(safe.reward)
        parts = self.modelled(safe, thresholds)
        head, nowhere = (self.switches | DECLARED, 0, int(safe.arm or 0)), np.zeros(2 + self.context + self.segments)
        layout, settings = assembled(head, promise, nowhere, parts)
        settle(self, layout=layout, settings=np.append(settings, last))

    @cached_property
    def models(self) -> dict[str, str]:
        """How each signal is modelled, by its name."""
        names, kinds = self.thresholds.names, get_args(SignalModel)
        given = self.cost_model
        if isinstance(given, Mapping) and not all(isinstance(name, str) and name in names for name in given):
            raise InvalidProblem(f"cost_model names {shown(list(given))}; the constraints are {shown(list(names))}")
        costs = {name: given.get(name, "rates") if isinstance(given, Mapping) else given for name in names}
        told = {"reward": self.reward_model, **costs}
        return {name: one_of(kind, kinds, f"the model of {name!r}") for name, kind in told.items()}

    @cached_property
    def divisions(self) -> dict[str, int]:
        """By which division each signal's rates are kept; −1: by none."""
        given = {} if self.by is None else self.by
        if not isinstance(given, Mapping) or not all(isinstance(name, str) and name in self.models for name in given):
            raise InvalidProblem(f"by is {shown(self.by)}; it must name signals: {', '.join(self.models)}")
        for name, division in given.items():
            if self.models[name] != "rates":
                raise InvalidProblem(f"by names {name!r}, which is {self.models[name]}; only rates are kept by segment")
            whole(division, f"the division of {name!r}", f"below segments ({self.segments})", 0, self.segments - 1)
        return {name: int(given.get(name, -1)) for name in self.models}

    @cached_property
    def declared_costs(self) -> list[float]:
        """What the safe action's signed mean costs are at most; ∞: nothing was declared."""
        known = self.thresholds.signs * safe_costs(self.safe_action, self.thresholds.names)
        return [math.inf if math.isnan(cost) else float(cost) for cost in known]

    @cached_property
    def shares(self) -> Floats:
        """What of δ every action takes."""
        launched = self.actions if self.launched is None else self.launched
        whole(launched, "launched", f"from 1 to {self.actions}, the actions there are", 1, self.actions)
        return action_shares(self.actions, launched)

    def modelled(self, safe: SafeAction, thresholds: Thresholds) -> tuple[Modelled, ...]:
        """Return the models of the signals as kernels read them."""
        size, bound, m = 1 + self.context, positive(self.norm_bound, "norm_bound"), thresholds.values.size
        noise = np.full(1, NOISE)
        ridge = natural(size, noise, np.full(1, bound)) if self.ridge is None else positive(self.ridge, "ridge")
        delta, (high, other) = probability(self.delta, "delta"), end_shares(m)
        costs = self.declared_costs
        declared, lows, parts = [-np.inf if safe.reward is None else safe.reward, *costs], lows_of(thresholds.signs), []
        expected = [0.5, *(thresholds.signs * self.sharpest(thresholds) - lows[1:]).tolist()]
        for place, (name, kind) in enumerate(self.models.items()):
            lower, upper = -math.log(delta * other), -math.log(delta * (high if place else other))
            signal = Signal(place, float(lows[place]), lower, upper, float(declared[place]), float(expected[place]))
            if kind == "linear":
                parts.append(signal.linear(size, self.shares, ridge, bound))
            else:
                division = self.divisions[name]
                parts.append(signal.rates(-1 if division < 0 else 1 + size + division, self.shares))
        return tuple(parts)

    def sharpest(self, thresholds: Thresholds) -> Floats:
        """Return the mean costs (m,) around which the sets are sharpest."""
        given = {} if self.expected is None else self.expected
        if not isinstance(given, Mapping) or not all(
            isinstance(name, str) and name in thresholds.names for name in given
        ):
            raise InvalidProblem(
                f"expected is {shown(self.expected)}; it must name limits: {', '.join(thresholds.names)}"
            )
        told = [
            number(given.get(name, value), f"the expected {name!r}")
            for name, value in zip(thresholds.names, thresholds.values.tolist(), strict=True)
        ]
        beyond = next(
            (
                name
                for name, value in zip(thresholds.names, told, strict=True)
                if name in given and not 0.0 <= value <= 1.0
            ),
            None,
        )
        if beyond is not None:
            raise InvalidProblem(f"the expected {beyond!r} is {given[beyond]:g}; outcomes lie in [0, 1]")
        return np.array(told)

    @cached_property
    def _template(self) -> Floats:
        """The rows of all actions, without a context."""
        rows = np.zeros((self.actions, 2 + self.context + self.segments))
        rows[:, 0], rows[:, 1] = np.arange(self.actions), 1.0
        return rows

    @property
    def first_room(self) -> int:
        """Segments that a new memory has room for."""
        return FIRST_ROOM if self.segments else 0

    def start(self) -> State:
        """Return the memory of a policy that has seen nothing; it never follows candidates."""
        memory = self.begun(self.layout, self.settings)
        memory[FOLLOWED] = NEVER
        return State(memory)

    def fits(self, memory: Floats) -> bool:
        """Say whether a memory can be this policy's."""
        if not fitting_memory(memory, self.layout, MOST) or memory[FOLLOWED] != NEVER:
            return False
        return bool(memory[ROOM] >= self.first_room) and IN_ORDER(self.layout, memory)

    def rows_for(self, context: Context) -> Floats:
        """Return the rows (K, D) of all actions for one user."""
        if context.features.size != self.context or context.segments.size != self.segments:
            raise InvalidActions(
                f"the context is {context!r}; this policy needs {several(self.context, 'number')} and "
                f"{several(self.segments, 'segment')}"
            )
        if not context.inside and not (np.abs(context.features) <= 1.0).all():
            beyond = context.features[np.abs(context.features) > 1.0][0]
            raise InvalidActions(f"the context holds {beyond:g}; every number must lie in [-1, 1], so rescale it")
        rows = self._template.copy()
        rows[:, 2 : 2 + self.context] = context.features
        if self.segments:
            rows[:, 2 + self.context :] = context.segments
        return rows

    def form_for(self, actions: Any) -> Form | None:
        """Return how compiled loops play it: where every round has a user, in plain features."""
        return self.form if getattr(actions, "crossed", None) is False else None

    def played_from(self, offered: Any, features: Floats, fresh: bool, start: State | None = None) -> Floats:
        """Return the memory that a compiled run begins with: nothing is followed."""
        self.logged(offered.features)  # refuse here what play by hand refuses
        return self.begins(start).memory

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Draw an action from a safe mixture for this user."""
        rows, eligible = self.offer_of(actions)
        seen = self.chosen(self.form, state, rows, eligible, draw)
        played = own(rows[seen.code if seen.code >= 0 else self.layout.item(HOME)])
        told = (self.presented, draw.round)
        decision = decision_from(
            seen, played, *told, why=PROPOSED, names=self.names, kind=self.decides, span=self.reward_span
        )
        return self.explained(seen, state, decision)

    def offer_of(self, actions: Any) -> tuple[Floats, Flags]:
        """Return the rows of all actions for this user, and which of them are on offer."""
        if isinstance(actions, Context):
            return self.rows_for(actions), actions.eligible_of(self.actions)
        if actions is None:
            return self.rows_for(Context()), ALL
        if not isinstance(actions, Finite):
            raise InvalidActions(f"the actions are {shown(actions)}; this policy is given a Context")
        if actions.start is not None and actions.start.place != int(self.layout[HOME]):
            raise InvalidActions(f"the rows name {shown(actions.start.place)} as safe; here it is {self.layout[HOME]}")
        rows = self.logged(actions.features)
        if len(rows) != self.actions or not np.array_equal(rows[:, 0], self._template[:, 0]):
            raise InvalidActions(f"the rows are {shown(actions)}; there must be one for each of {self.actions} actions")
        if not np.array_equal(rows[:, 1:], np.broadcast_to(rows[0, 1:], rows[:, 1:].shape)):
            raise InvalidActions("the rows tell of several users; a round is for one of them")
        return rows, actions.eligible

    def roomy(self, layout: Ints, settings: Floats, memory: Floats) -> Floats:
        """Return the memory, with twice the room where more than half of it is taken: slots are then found at once."""
        room = int(memory.item(ROOM))
        return memory if room == 0 or 2 * most_met(layout, memory) < room else self.with_room(memory, room)

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return 2 + self.context + self.segments

    def take_rows(self, state: State, rows: Floats, values: Floats) -> State:
        """Take in rows (n, D) and values (n, 1 + m), NaN for what is not in: as `take` one by one, to the bit."""
        done = 0
        while done < len(rows):
            memory = self.roomy(self.layout, self.settings, state.memory)
            few = before_full(self.layout, memory, rows[done:], values[done:]) if memory.item(ROOM) else len(rows)
            end = min(done + few, len(rows))
            state = super().absorb_log(State(memory), rows[done:end], values[done:end])
            done = end
        return state

    def absorb_log(self, state: State, actions: Any, values: Any) -> State:
        """Take in a log as one batch; its segments count in the order of their numbers, as rows stand in any order."""
        memory, first = state.memory, 2 + self.context
        met = [np.unique(actions[:, first + division]) for division in range(self.segments)]
        memory = self.with_room(memory, most_met(self.layout, memory) + max((keys.size for keys in met), default=0))
        for division, keys in enumerate(met):
            meet(self.layout, memory, first + division, keys)
        return super().absorb_log(State(memory), actions, values)

    def with_room(self, memory: Floats, segments: int) -> Floats:
        """Return the memory with room for so many segments, and as many more, so that slots are found at once."""
        if 2 * segments <= memory.item(ROOM):
            return memory
        changed = aligned(MEMORY_SIZE(self.layout, int(NEVER), 2 * segments))
        memory_kernels_for(*self.form.models).widen(self.layout, memory, 2 * segments, changed)
        return changed

    def with_room_for(self, memory: Floats, segments: int) -> Floats:
        """Return the memory with room for so many segments beside those that were met."""
        return self.with_room(memory, segments + most_met(self.layout, memory)) if segments else memory

    def grown(self, fewer: "ContextCAPS", state: State) -> State:
        """Return what was learned with fewer actions, the same first, as this policy's own."""
        room = int(fewer.own(state).memory[ROOM])
        memory = aligned(MEMORY_SIZE(self.layout, 0, room))
        starting(self.form)(self.layout, self.settings, room, memory, np.empty(0))
        memory[FOLLOWED] = NEVER
        GROW(fewer.layout, state.memory, self.layout, memory)
        return State(memory)

    def safe_in(self, decision: Decision) -> tuple[Any, int, float]:
        """Return what is done today for a decision's user."""
        home = int(self.layout[HOME])
        row = np.array(decision.action)
        row[0] = float(home)
        return row, home, 1.0

    def logged(self, actions: Any) -> Floats:
        """Return rows (n, 2 + context + segments): the action, 1, the context, the segments."""
        rows = array(actions, "the logged actions", InvalidActions)
        d = 2 + self.context
        if rows.ndim != 2 or rows.shape[1] != d + self.segments:
            raise InvalidActions(
                f"the logged actions have shape {rows.shape}; each row is the action's number, 1, "
                f"{several(self.context, 'number')} and {several(self.segments, 'segment')}{self.log_hint}"
            )
        numbered, segments = rows[:, 0], rows[:, d:]
        good = (numbered >= 0) & (numbered < self.actions) & (numbered == np.floor(numbered)) & (rows[:, 1] == 1.0)
        good &= (np.abs(rows[:, 2:d]) <= 1.0).all(axis=1)
        good &= ((segments >= 0) & (segments < LARGEST_SEGMENT) & (segments == np.floor(segments))).all(axis=1)
        if not good.all():
            first = int(np.argmin(good))
            raise InvalidActions(
                f"row {first} of the logged actions is {shown(rows[first].tolist())}; it must hold an action from 0 to "
                f"{self.actions - 1}, 1, numbers in [-1, 1], and segments from 0"
            )
        return rows

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the outcome as it is learned from: in [0, 1]."""
        values = super().values(reward, cost)
        check_unit_range(values, self.thresholds, "every outcome must lie there, so rescale")
        return values

    @property
    def apart(self) -> bool:  # type: ignore[override]
        """Every signal has a model of its own, and may be learned by itself."""
        return True

    @property
    def bounded(self) -> bool:
        """Outcomes are promised to lie in [0, 1]."""
        return True
