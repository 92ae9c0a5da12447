"""A world whose means move with time, and whose outcomes may be learned late."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from stagewise.engine.compile import as_python
from stagewise.engine.world_draws import HILL, JUMP, PATH, SEASON, SLOPE, compute_time, move_means
from stagewise.problem.actions import FiniteSet
from stagewise.problem.checks import (
    Floats,
    check_array,
    check_choice,
    check_integer,
    check_mapping,
    check_name,
    check_number,
    check_positive,
    copy_read_only,
    unwrap_scalar,
)
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.problem.timing import LATEST, UNITS, parse_seconds
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise.worlds.context_world import UserActions, UserWorld
from stagewise.worlds.noisy_world import get_signal_names
from stagewise.worlds.world import check_draw

MoveKind = Literal["slope", "hill", "season", "jump", "path"]
CODES: dict[str, int] = {"slope": SLOPE, "hill": HILL, "season": SEASON, "jump": JUMP, "path": PATH}
DAY = UNITS["d"]
MOST_LAG = 1_000_000  # rounds, whose outcomes wait in memory
TIME, MOVE = as_python(compute_time), as_python(move_means)


@dataclass(frozen=True, kw_only=True)
class Move:
    """How the mean of one action moves; moves of the same mean add up.

    Raises:
        InvalidProblem: A value is out of range, or a setting would be ignored.

    Example:
        >>> Move(kind="slope", signal="opt_out", action=1, amount=0.01, start="40d", length="30d").seconds
        (3456000.0, 2592000.0)
    """

    kind: MoveKind
    """ "slope": by `amount` within `length`, once. "hill": up within `length` and down again within as much. "season":
    a sine of height `amount` and period `length`. "jump": by `amount` at `start`. "path": `amount` times the `values`,
    at steps of `length`, linear between them; after the last one back again."""
    signal: str
    """The signal: "reward", the name of a cost, or "cost 1", "cost 2", ... where costs have no names."""
    action: int
    """The index of the action."""
    amount: float = 1.0
    """By how much the mean moves."""
    start: str | float = 0.0
    """When it begins, after the first round: "40d", or seconds."""
    length: str | float | None = None
    """How long it takes: "30d", or seconds. Not for jumps."""
    values: Sequence[float] | None = None
    """The values of a path."""

    def __post_init__(self) -> None:
        check_choice(self.kind, get_args(MoveKind), "the kind of a move")
        check_name(self.signal, "the signal of a move")
        object.__setattr__(self, "amount", check_number(self.amount, "the amount of a move"))
        object.__setattr__(self, "action", check_integer(self.action, "the action of a move", "an index", 0, 2**31))
        if (self.length is None) != (self.kind == "jump"):
            rule = "left out, since a jump takes no time" if self.kind == "jump" else "given, such as '30d'"
            raise InvalidProblem.must_be(ErrorCode.MISSING_VALUE, "the length of a move", self.length, rule)
        if (self.values is None) != (self.kind != "path"):
            rule = "given for a path, and for nothing else"
            raise InvalidProblem.must_be(ErrorCode.MISSING_VALUE, "the values of a move", self.values, rule)
        for name in ("start", "length"):
            object.__setattr__(self, name, unwrap_scalar(getattr(self, name)))
        if self.values is not None:
            values = check_array(self.values, "the values of a move")
            if values.ndim != 1 or not values.size:
                raise InvalidProblem.must_be(ErrorCode.WRONG_SHAPE, "the shape of the values", values.shape, "(n,)")
            object.__setattr__(self, "values", tuple(values.tolist()))
        _ = self.seconds

    @property
    def seconds(self) -> tuple[float, float]:
        """Its start and its length, in seconds."""
        start = parse_seconds(self.start) if isinstance(self.start, str) else check_number(self.start, "the start")
        return start, 1.0 if self.length is None else parse_seconds(self.length)

    def describe(self) -> dict[str, Any]:
        """Return the move as JSON holds it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def parse_move(value: Any) -> Move:
    """Return a move, given as one or as its settings."""
    if isinstance(value, Mapping):
        names = [one.name for one in fields(Move)]
        for name in check_mapping(value, "a move"):
            if name not in names:
                raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_SETTING, "a name in a move", name, names)
        for name in ("kind", "signal", "action"):
            if name not in value:
                raise InvalidProblem(ErrorCode.MISSING_VALUE, "a move lacks {name}", name=name)
        return Move(**value)
    if not isinstance(value, Move):
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "a move", value, "a Move")
    return value


class ClockedSet(FiniteSet):
    """The actions of a round, which has a time."""

    __slots__ = ("time",)

    time: float


class ClockedUsers(UserActions):
    """The actions of another world, for users who come at the times of a clock."""

    __slots__ = ("clock", "timed", "users")

    crossed: ClassVar[bool] = False

    def __init__(self, users: Any, clock: Floats, timed: bool) -> None:
        self.users, self.clock, self.timed = users, clock, timed
        self.count, self.safe = users.count, users.safe

    def __getattr__(self, name: str) -> Any:
        if name in ("users", "clock"):  # not there yet, as when it is copied
            raise AttributeError(name)
        return getattr(self.users, name)

    @property
    def dimension(self) -> int:
        return int(self.users.dimension) + self.timed

    def fill(self, features: Floats, draw: RandomKey) -> None:
        if not self.timed:
            self.users.fill(features, draw)
            return
        plain = np.empty((self.count, self.dimension - 1))
        self.users.fill(plain, draw)
        features[:, :-1], features[:, -1] = plain, TIME(self.clock, draw.round)

    def max_means(self, directions: Floats) -> Floats:
        return np.asarray(self.users.max_means(directions))

    def draw(self, draw: RandomKey) -> ClockedSet:
        features = np.empty((self.count, self.dimension))
        self.fill(features, check_draw(draw))
        offered = ClockedSet.from_view(features, RoundSafeAction(self.safe, features[self.safe]))
        offered.time = TIME(self.clock, draw.round)
        return offered

    def __repr__(self) -> str:
        return f"{self.users!r} at times"


class MovingWorld(UserWorld):
    """A world whose means move with time. Its rounds have times, as limits with a drift need them.

    Args:
        world: What moves: a `ContextWorld` with features="plain", or a `UserTableWorld`, with outcomes in [0, 1].
        moves: How the means of its actions move; means are cut to [0, 1].
        per_day: How many users come a day, evenly.
        lag: How late an outcome is learned: a number of rounds, or a length of time, such as "2d".
        start: The time of the first round, in seconds since 1970.

    Raises:
        InvalidProblem: The world cannot move, or a value is out of range.

    Example:
        >>> import stagewise as sw
        >>> still = sw.ContextWorld(reward=[[0.0], [0.1]], cost=[[0.0], [0.01]], features="plain")
        >>> rises = sw.Move(kind="slope", signal="cost 1", action=1, amount=0.01, start="40d", length="30d")
        >>> world = MovingWorld(still, moves=[rises], per_day=1000)
        >>> [world.means_on(day)[1, 1].round(4).item() for day in (0.0, 55.0, 90.0)]
        [0.01, 0.015, 0.02]
    """

    actions: ClockedUsers
    moves: tuple[Move, ...]
    clock: Floats

    def __init__(
        self,
        world: Any,
        *,
        moves: Sequence[Move | Mapping[str, Any]] = (),
        per_day: float,
        lag: int | str = 0,
        start: float = 0.0,
    ) -> None:
        if not isinstance(world, UserWorld) or isinstance(world, MovingWorld) or not world.is_builtin:
            rule = "a ContextWorld with features='plain', or a UserTableWorld"
            raise InvalidProblem.must_be(ErrorCode.WORLD_MISMATCH, "the world that moves", world, rule)
        if world.plain_users is None or world.outcomes not in ("bernoulli", "shrunk"):
            text = "a world of kind {type_name} moves only with features='plain' and outcomes in [0, 1]"
            raise InvalidProblem(ErrorCode.WORLD_MISMATCH, text, type_name=world.type_name)
        self.world = world
        self.per_day = check_positive(per_day, "per_day")
        self.start = check_number(start, "start")
        if not abs(self.start) <= LATEST:
            rule = f"in [-{LATEST:g}, {LATEST:g}] seconds since 1970"
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "start", self.start, rule)
        rounds = round(parse_seconds(lag) * self.per_day / DAY) if isinstance(lag, str) else lag
        self.lag = check_integer(rounds, "lag", f"from 0 to {MOST_LAG:,} rounds", 0, MOST_LAG)
        if not isinstance(moves, list | tuple):
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "moves", moves, "a list of Move")
        given = [parse_move(one) for one in moves]
        signals = get_signal_names(world.costs, world.names)
        for one in given:
            if one.signal not in signals:
                raise InvalidProblem.must_be_one_of(
                    ErrorCode.UNKNOWN_SIGNAL, "the signal of a move", one.signal, signals
                )
            last = world.actions.count - 1
            check_integer(one.action, "the action of a move", f"from 0 to {last}", 0, last)
        self.moves = tuple(given)
        self._bind(timed=False)

    def _bind(self, timed: bool) -> None:
        """Write what kernels read."""
        signals, first, values, rows = get_signal_names(self.world.costs, self.world.names), 0, list[float](), []
        for one in self.moves:
            begin, length = one.seconds
            known = list(one.values or ())
            row = [CODES[one.kind], signals.index(one.signal), one.action, one.amount, self.start + begin, length]
            rows.append([*row, first, len(known)])
            values += known
            first += len(known)
        self.move_rows = copy_read_only(np.array(rows, dtype=np.float64).reshape(-1, 8))
        self.move_values = copy_read_only(np.array(values, dtype=np.float64))
        self.clock = copy_read_only(np.array([self.start, DAY / self.per_day, float(self.lag)]))
        self.actions = ClockedUsers(self.world.actions, self.clock, timed)
        self.parameters, self.noise, self.names = self.world.parameters, self.world.noise, self.world.names
        self.outcomes, self.kinds = self.world.outcomes, self.world.kinds  # type: ignore[misc]

    @property
    def assumed(self) -> bool:  # type: ignore[override]
        """Whether the safe action must keep the limits."""
        return self.world.assumed

    @property
    def draw_kind(self) -> int:
        return self.world.draw_kind

    @property
    def norms(self) -> Floats | None:
        return self.world.norms

    def with_times(self, needed: bool) -> Self:
        other = copy(self)
        other._bind(needed)
        return other

    def reorder_costs(self, names: Sequence[str]) -> Self:
        other = copy(self)
        other.world = self.world.reorder_costs(names)
        other._bind(self.actions.timed)
        return other

    def check(self, policy: Any) -> None:
        self.world.check(policy)

    def means(self, action: Any) -> Floats:
        return self.world.means(action)

    def action_means(self, index: int, features: Any) -> Floats:
        return self.world.action_means(index, features)

    def truths(self, actions: Any) -> Floats:
        rows = actions.features[:, :-1] if self.actions.timed else actions.features
        table = np.column_stack([self.world.action_means(index, row) for index, row in enumerate(rows)])
        MOVE(self.move_rows, self.move_values, np.ones(len(table)), actions.time, table)
        return table

    def means_at(self, index: int, actions: Any) -> Floats:
        return np.array(self.truths(actions)[:, index])

    def outcome_played(self, index: int, action: Any, actions: Any, draw: RandomKey) -> Outcome:
        return self.draw_outcome(self.means_at(index if index >= 0 else self.actions.safe, actions), draw)

    def means_on(self, day: float) -> Floats:
        """Return the means (1 + m, K) of the mean user on a day after the first round.

        Args:
            day: The number of days.

        Returns:
            The means.
        """
        users, now = self.world.actions, self.start + check_number(day, "the day") * DAY
        table = np.column_stack([self._mean_of(users, action) for action in range(users.count)])
        MOVE(self.move_rows, self.move_values, np.ones(len(table)), now, table)
        return table

    def _mean_of(self, users: Any, action: int) -> Floats:
        """Return the means (1 + m,) of an action for the mean user."""
        if hasattr(users, "table"):
            return np.asarray(self.parameters.reshape(len(self.parameters), -1, users.count)[:, :, action].mean(axis=1))
        other = copy(users)
        other.safe = action
        return np.asarray(other.mean_at_safe(self.parameters))

    def max_at_safe(self, signs: Floats) -> Floats:
        """Return the largest signed means of the safe action at any time, or a little more."""
        most = self.world.max_at_safe(signs)
        for one, row in zip(self.moves, self.move_rows, strict=True):
            if one.action == self.actions.safe:
                ends = [one.amount * value for value in (one.values or (0.0, 1.0))]
                ends = [-abs(one.amount), abs(one.amount)] if one.kind == "season" else ends
                most[int(row[1])] += max(0.0, *(signs[int(row[1])] * end for end in ends))
        low, high = np.minimum(signs, 0.0), np.maximum(signs, 0.0)
        return np.clip(most, low, high)

    def mean_at_safe(self) -> Floats:
        """Return the means of the safe action, as they are without moves."""
        return self.world.mean_at_safe()

    @property
    def most(self) -> Floats:
        return np.ones(1 + self.costs)

    def description(self) -> dict[str, Any]:
        """Return the world as JSON holds it."""
        return {
            "kind": type(self).__name__,
            "world": self.world.description(),
            "moves": [one.describe() for one in self.moves],
            "per_day": self.per_day,
            "lag": self.lag,
            "start": self.start,
        }

    @classmethod
    def from_description(cls, described: dict[str, Any]) -> Self:
        from stagewise.worlds.world_families import build_world

        return cls(**{**described, "world": build_world(described["world"])})
