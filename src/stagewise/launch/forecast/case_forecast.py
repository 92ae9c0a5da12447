"""The cases of a forecast: the runs of each by day, every run in its own world, and their summary."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.random import to_signed_seed
from stagewise.engine.world_draws import LAG, fill_row_indices
from stagewise.launch.statistics import Band, compute_band
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.policies.policy import PolicyState
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_mapping, check_number, is_listing
from stagewise.problem.errors import ErrorCode, InvalidProblem, StagewiseError
from stagewise.problem.signals import Limit
from stagewise.problem.thresholds import parse_threshold
from stagewise.simulation.compiled_run import CompiledRun
from stagewise.simulation.executors import RestartingPool, Workers, open_executor, progress_bar, run_tasks
from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.run import compute_recorded_rounds, empty_trace
from stagewise.worlds.moving_world import MovingWorld
from stagewise.worlds.user_table_world import UserTableWorld

TASKS_PER_PROCESS = 4  # so that no process waits long
DECIMALS = 9  # sums from running means have rounding errors
PROGRESS_ROUNDS = 5_000_000  # rounds from which a progress bar is shown


class TrainedPolicy(NamedTuple):
    """A policy and its trained state."""

    policy: SafeContextPosteriorSampling
    warm_start: PolicyState


class Horizon(NamedTuple):
    """Days, users per day and seed."""

    days: int
    users: int  # a day
    seed: int

    @property
    def rounds(self) -> int:
        return self.days * self.users


class DailyRuns(NamedTuple):
    """Runs of one policy by day; all values are scaled to [0, 1], in their declared direction."""

    reward: Floats  # (runs, days) true expected reward per user
    cost: Floats  # (runs, days, m)
    safe: Floats  # (runs, days, 1 + m) true means of the safe action, with the same users
    observed: Floats  # (runs, days, 1 + m) mean outcomes per user
    action_shares: Floats  # (runs, days, K) shares of users by action
    runs_over_limit: Floats  # (runs, m) 1: the true expected cost of some round is over the limit
    safe_action_over_limit: Floats  # (runs, m) 1: the safe action is over the limit for some users
    safe_cost_underdeclared: Floats  # (runs, m) 1: it costs more than declared for some users


def concatenate_runs(parts: Sequence[DailyRuns]) -> DailyRuns:
    return DailyRuns(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def simulate_runs(
    worlds: Any,
    players: Sequence[TrainedPolicy],
    runs: int,
    horizon: Horizon,
    executor: Workers = None,
    progress: bool = True,
) -> list[DailyRuns]:
    """Simulate all runs of every policy; run i has the same world and users for all of them."""
    rounds = runs * horizon.rounds * len(players)
    with (
        open_executor(executor, runs, rounds) as workers,
        progress_bar(progress and rounds >= PROGRESS_ROUNDS, runs, rounds // runs) as advance,
    ):
        pieces = np.array_split(np.arange(runs), min(runs, 1 if workers is None else TASKS_PER_PROCESS * 2))
        pieces = [np.array([run]) for run in range(runs)] if workers is None else pieces
        tasks = {index: (worlds, players, piece.tolist(), horizon) for index, piece in enumerate(pieces)}
        results = {}
        if isinstance(workers, RestartingPool):  # compile once, not in every process
            simulate_some(worlds, players, [0], Horizon(1, 1, horizon.seed))
        for index, part in run_tasks(simulate_some, tasks, workers):
            results[index] = part
            advance(len(pieces[index]))
    return [
        concatenate_runs([results[index][player] for index in range(len(pieces))]) for player in range(len(players))
    ]


def simulate_some(
    worlds: Any, players: Sequence[TrainedPolicy], runs: Sequence[int], horizon: Horizon
) -> list[DailyRuns]:
    by_player: list[list[DailyRuns]] = [[] for _ in players]
    for run in runs:
        world = worlds(run)
        safe = compute_safe_days(world, run, horizon)
        for index, player in enumerate(players):
            by_player[index].append(simulate_run(player, world, safe, run, horizon))
    return [concatenate_runs(each) for each in by_player]


def compute_safe_days(world: UserTableWorld | MovingWorld, run: int, horizon: Horizon) -> Floats:
    """Return the safe action's means with the users of every day (days, 1 + m); means that move, as at noon."""
    still: Any = world.world if isinstance(world, MovingWorld) else world
    users, rows = still.actions, np.empty(horizon.rounds, dtype=np.int64)
    fill_row_indices(rows, len(users.table), to_signed_seed(horizon.seed), run, 0)
    means = still.table[:, :, users.safe][:, rows]
    by_day = np.asarray(means.reshape(len(means), horizon.days, horizon.users).mean(axis=2).T)
    if isinstance(world, MovingWorld):
        middle = still.table.mean(axis=1)[:, users.safe]
        by_day = by_day + [world.means_on(day + 0.5)[:, users.safe] - middle for day in range(horizon.days)]
    return by_day


def simulate_run(
    player: TrainedPolicy, world: UserTableWorld | MovingWorld, safe: Floats, run: int, horizon: Horizon
) -> DailyRuns:
    """Simulate one run; where outcomes are learned late, it goes on until those of the last day are learned."""
    policy, oracle = player.policy, build_oracle(player.policy, world)
    lag = int(world.clock[LAG]) if isinstance(world, MovingWorld) else 0
    ends = compute_recorded_rounds(horizon.rounds, horizon.days)
    trace = empty_trace(ends if lag == 0 else np.append(ends, horizon.rounds + lag), world.costs)
    simulation = CompiledRun(policy, oracle, trace, to_signed_seed(horizon.seed), run, player.warm_start)
    before, observed, shares, played = policy.compute_totals(simulation.state), [], [], 0
    largest = trace.largest
    for stop in sorted({horizon.rounds, *((day + 1) * horizon.users + lag for day in range(horizon.days))}):
        simulation.play(played, stop)
        played = stop
        if stop == horizon.rounds:
            largest = trace.largest.copy()
        if stop >= lag + horizon.users and (stop - lag) % horizon.users == 0:  # the outcomes of a day are learned
            after = policy.compute_totals(simulation.state)
            today = after.since(before)
            observed.append(np.round(today.sums.sum(axis=1) / horizon.users, DECIMALS) + 0.0)  # no negative zero
            shares.append(today.pulls[0] / horizon.users)
            before = after
    signs, m = oracle.signs[1:], oracle.limits.size
    is_over = (largest[:m] > oracle.limits).astype(np.float64)
    safe_costs = oracle.safe_means[1 : 1 + m]
    safe_is_over, underdeclared = (
        (safe_costs > oracle.limits).astype(np.float64),
        (safe_costs > policy.declared_costs).astype(np.float64),
    )
    daily = (
        trace.reward[: horizon.days],
        trace.cost[: horizon.days] * signs,
        safe,
        np.array(observed),
        np.array(shares),
    )
    return DailyRuns(*(each[np.newaxis] for each in (*daily, is_over, safe_is_over, underdeclared)))


MAX_CASES = 24
MARGIN = 0.01  # share of the safe action's reward that a gain must exceed to count as better


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with some values of its limits; `problem` is None and `error` is set if they are invalid."""

    values: dict[str, float]
    declared: bool
    problem: Problem | None
    error: StagewiseError | None = None


def get_limit_value(limit: Limit) -> float:
    """Return the number of a limit of any kind."""
    return float(parse_threshold(limit.value).number)


def get_permissiveness(limits: Mapping[str, Limit], values: Mapping[str, float]) -> tuple[float, ...]:
    """Return a sort key: larger for limits that allow more, in total and then one by one."""
    each = [-values[name] if limit.at_least else values[name] for name, limit in limits.items()]
    return (sum(each), *each)


def build_cases(problem: Problem, limits: Any) -> list[Case]:
    """Return the problem as declared and every combination of the requested values, the narrowest first."""
    requested = {} if limits is None else check_mapping(limits, "limits")
    choices: dict[str, list[float]] = {}
    for name, given in requested.items():
        if name not in problem.limits:
            raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_SIGNAL, "a name in limits", name, problem.limits)
        entries = list(given) if is_listing(given) else [given]
        choices[name] = sorted({check_limit_value(problem.limits[name], name, entry) for entry in entries})
    own = {name: get_limit_value(limit) for name, limit in problem.limits.items()}
    if not 1 <= math.prod(map(len, choices.values())) <= MAX_CASES:
        rule = f"at least one value of every limit, and at most {MAX_CASES} combinations"
        raise InvalidProblem.must_be(ErrorCode.TOO_LARGE, "limits", requested, rule)
    combined = [own | dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    distinct = [own, *(values for values in combined if values != own)]
    distinct.sort(key=lambda values: get_permissiveness(problem.limits, values))
    return [build_case(problem, values, values == own) for values in distinct]


def check_limit_value(limit: Limit, name: str, value: Any) -> float:
    """Return the value of a limit, or reject one that no outcome can reach."""
    given = check_number(value, f"the limit of {name!r}")
    if not parse_threshold(limit.value).relative and not limit.low <= given <= limit.high:
        percent = "; was it a percentage?" if limit.high == 1.0 and 1.0 < given <= 100.0 else ""
        rule = f"in the range of its outcomes, [{limit.low:g}, {limit.high:g}]{percent}"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, f"the limit of {name!r}", given, rule)
    return given


def build_case(problem: Problem, values: dict[str, float], declared: bool) -> Case:
    """Return one case; an invalid limit, such as one that the safe action breaks, is kept as `error`."""
    if declared:
        return Case(values, True, problem)
    limits = {name: limit.with_number(float(values[name])) for name, limit in problem.limits.items()}
    try:
        return Case(values, False, replace(problem, limits=limits))
    except StagewiseError as error:
        return Case(values, False, None, error)


def find_most_permissive(cases: Sequence[Case]) -> int:
    """Return the index of the valid case that allows most."""
    return max(index for index, case in enumerate(cases) if case.problem is not None)


class GainVerdict(StrEnum):
    """What the 90 % bands say of the gain over the safe action."""

    BETTER = "better"
    """Better by more than `MARGIN` on every day from some day on."""
    SMALL_GAIN = "small_gain"
    """A certain gain in all, but on no last days by more than `MARGIN`."""
    WORSE = "worse"
    """A certain loss in all."""
    UNCLEAR = "unclear"
    """The band of the gain contains 0."""


@dataclass(frozen=True, eq=False)
class CaseForecast:
    """The forecast of one case, in the signals' own units."""

    case: Case
    gain: Band
    """Expected reward per user minus the safe action's, by day."""
    reward: Band
    """Observed reward per user, by day."""
    costs: dict[str, Band]
    """Observed cost per user of every limit, by day."""
    expected_costs: dict[str, Band]
    """True expected cost per user, which the limit applies to, by day."""
    action_shares: Floats
    """The share of users by action (days, K), averaged over runs."""
    total_gain: Band
    """Expected reward minus the safe action's, of the whole campaign."""
    total_reward: Band
    """Observed reward of the whole campaign."""
    total_costs: dict[str, Band]
    """Observed cost per user of every limit, over the whole campaign."""
    per_user: float
    """Expected reward per user over the whole campaign, averaged over runs."""
    safe_per_user: float
    """The same for the safe action, with the same users."""
    better_from: int | None
    """The first day from which the band of every day's gain is above MARGIN; None: there is none."""
    runs_over_limit: dict[str, float]
    """The share of runs in which the true expected cost of some round is over the limit."""
    runs_over_any_limit: float
    """The same for any limit."""
    safe_action_over_limit: dict[str, float]
    """The share of runs in whose world the safe action is over the limit for some users."""
    safe_cost_underdeclared: dict[str, float]
    """The share of runs in whose world the safe action costs more than declared for some users."""
    violations_if_assumptions_hold: float
    """The share of runs over a limit although the declared values of the safe action are true."""
    price: Band | None = None
    """Expected reward per user lost against the widest limits, over all days; None: these are the widest."""

    @property
    def is_gain_certain(self) -> bool:
        """Whether the whole band of the total gain is above 0."""
        return bool(self.total_gain.low > 0.0)

    @property
    def verdict(self) -> GainVerdict:
        """What the bands say of the gain."""
        if self.better_from is not None:
            return GainVerdict.BETTER
        if self.is_gain_certain:
            return GainVerdict.SMALL_GAIN
        return GainVerdict.WORSE if self.total_gain.high < 0.0 else GainVerdict.UNCLEAR

    @property
    def non_safe_share(self) -> Floats:
        """The share of users (days,) who do not get the safe action."""
        problem = self.case.problem
        assert problem is not None
        return np.asarray(1.0 - self.action_shares[:, list(problem.action_names).index(problem.safe_name)])

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as JSON values."""
        assert self.case.problem is not None
        shares = zip(self.case.problem.action_names, self.action_shares.T, strict=True)

        def to_json(bands: dict[str, Band]) -> dict[str, Any]:
            return {name: band.to_dict() for name, band in bands.items()}

        return {
            "limits": self.case.values,
            "declared": self.case.declared,
            "verdict": str(self.verdict),
            "by_day": {
                **to_json({"gain": self.gain, "reward": self.reward}),
                "costs": to_json(self.costs),
                "expected_costs": to_json(self.expected_costs),
                "action_shares": {name: np.round(each, 6).tolist() for name, each in shares},
                "non_safe_share": np.round(self.non_safe_share, 6).tolist(),
            },
            "total": {
                **to_json({"gain": self.total_gain, "reward": self.total_reward}),
                "costs": to_json(self.total_costs),
                "reward_per_user": self.per_user,
                "safe_reward_per_user": self.safe_per_user,
            },
            "better_from_day": self.better_from,
            "runs_over_limit": {
                **self.runs_over_limit,
                "any": self.runs_over_any_limit,
                "violations_if_assumptions_hold": self.violations_if_assumptions_hold,
            },
            "safe_action_over_limit": self.safe_action_over_limit,
            "safe_cost_underdeclared": self.safe_cost_underdeclared,
            "price_per_user": None if self.price is None else self.price.to_dict(),
        }


def summarize_case(case: Case, days: DailyRuns, users: int, widest: DailyRuns | None) -> CaseForecast:
    """Return the forecast of a case; `widest` are the same runs under the widest limits, unless these are they."""
    problem = case.problem
    assert problem is not None
    low, length = problem.spans
    safe, observed, reward = low[0] + length[0] * days.safe[:, :, 0], low + length * days.observed, days.reward
    gains, cost = length[0] * (reward - days.safe[:, :, 0]), low[1:] + length[1:] * days.cost
    price = None if widest is None else compute_band(length[0] * (widest.reward - reward).mean(axis=1))
    over_any = days.runs_over_limit.any(axis=1)
    is_true = ~days.safe_action_over_limit.any(axis=1) & ~days.safe_cost_underdeclared.any(axis=1)
    gain = compute_band(gains)

    def by_limit(values: Floats, summarize: Callable[[Floats], Any]) -> dict[str, Any]:
        return {name: summarize(values[..., index]) for index, name in enumerate(problem.limits)}

    def share(flags: Any) -> float:
        return float(flags.mean())

    return CaseForecast(
        case=case,
        gain=gain,
        reward=compute_band(observed[:, :, 0]),
        costs=by_limit(observed[:, :, 1:], compute_band),
        expected_costs=by_limit(cost, compute_band),
        action_shares=days.action_shares.mean(axis=0),
        total_gain=compute_band(users * gains.sum(axis=1)),
        total_reward=compute_band(users * observed[:, :, 0].sum(axis=1)),
        total_costs=by_limit(observed[:, :, 1:], lambda values: compute_band(values.mean(axis=1))),
        per_user=float(low[0] + length[0] * reward.mean()),
        safe_per_user=float(low[0] + length[0] * days.safe[:, :, 0].mean()),
        better_from=find_better_from(gain, safe.mean(axis=0)),
        runs_over_limit=by_limit(days.runs_over_limit, share),
        runs_over_any_limit=share(over_any),
        safe_action_over_limit=by_limit(days.safe_action_over_limit, share),
        safe_cost_underdeclared=by_limit(days.safe_cost_underdeclared, share),
        violations_if_assumptions_hold=share(over_any & is_true),
        price=price,
    )


def find_better_from(gain: Band, safe: Floats) -> int | None:
    """Return the first day, from 1, from which the band of every day's gain is above MARGIN times `safe` (days,)."""
    good = gain.low > MARGIN * np.abs(safe)
    later = np.logical_and.accumulate(good[::-1])[::-1]
    return int(np.argmax(later)) + 1 if later.any() else None
