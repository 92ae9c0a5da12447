"""Randomised trials, used in two ways.

In a simulation a round draws one of the people with replacement, and the outcome of an action is that of somebody of
the same group who got it in the trial, so the rate of every action in every group is known. In an evaluation a policy
that learned from one half of the trial is evaluated on the other half, on real people and their real treatments.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.engine.compile import Floats, Ints
from stagewise_studies import tally
from stagewise_studies.replay import FixedPolicy, Learner, OutcomeFunction, People, StudyPolicy, always, find_best_under
from stagewise_studies.study import DRAWN, GUARDED, POSSIBLE, SAFE, TODAY, UNGUARDED, Size

EVERYBODY, GROUP = "everybody", "group"


@dataclass(frozen=True)
class Trial:
    """n people of a randomised trial: contexts, actions and outcomes."""

    actions: tuple[str, ...]
    taken: Ints  # (n,) the action
    contexts: list[dict[str, Any]]  # by name
    reward: Floats  # (n,)
    cost: Floats  # (n,)
    groups: Ints  # (n,) groups; every action was given to some people of each

    def people(self) -> People:
        """Return the people with the mean of every action in their group."""
        reward, cost = (self.rates(signal)[self.groups] for signal in (self.reward, self.cost))
        ways = {EVERYBODY: np.zeros_like(self.groups), GROUP: self.groups}
        return People(self.actions, self.contexts, reward, cost, ways)

    def rates(self, signal: Floats) -> Floats:
        """Return the mean (groups, K) of a signal by action."""
        return np.array([[signal[rows].mean() for rows in row] for row in self.cells()])

    def cells(self) -> list[list[Ints]]:
        """Return the people of each group by action."""
        ways = range(int(self.groups.max()) + 1), range(len(self.actions))
        return [[np.flatnonzero((self.groups == g) & (self.taken == a)) for a in ways[1]] for g in ways[0]]

    def frame(self, rows: Any, problem: sw.Problem) -> dict[str, Any]:
        """Return some rows as the log of a problem with one limit."""
        chosen, (limit,) = np.arange(self.taken.size)[rows], problem.limits
        columns: dict[str, Any] = {"action": [self.actions[index] for index in self.taken[chosen]]}
        columns |= {name: [self.contexts[row][name] for row in chosen] for name in problem.context_names}
        return columns | {problem.reward.name: self.reward[chosen], limit: self.cost[chosen]}


@dataclass(frozen=True)
class TrialLearner(Learner):
    """A problem with one limit, simulated on people of a trial."""

    trial: Trial

    def build_outcome(self, people: People) -> OutcomeFunction:
        """Return the function that draws an outcome from the person's group."""
        trial, cells = self.trial, self.trial.cells()

        def get_outcome(person: int, action: int, uniform: float) -> tuple[float, float]:
            donors = cells[trial.groups[person]][action]
            donor = donors[int(uniform * donors.size)]
            return trial.reward[donor], trial.cost[donor]

        return get_outcome


def split_halves(trial: Trial, seed: int = 0) -> tuple[Ints, Ints]:
    """Return the rows of two random halves."""
    order = np.random.default_rng([seed, 3]).permutation(trial.taken.size)
    return np.sort(order[: order.size // 2]), np.sort(order[order.size // 2 :])


def evaluate_holdout(trial: Trial, problems: Mapping[str, sw.Problem], propensity: Any) -> list[dict[str, Any]]:
    """Evaluate agents that learned from the first half of a trial, and every action, on the second half."""
    first, second = split_halves(trial)
    problem, agents = next(iter(problems.values())), {}
    for name, one in problems.items():
        agents[name] = sw.Agent(one, seed=0)
        agents[name].learn_log_frame(trial.frame(first, one))
    log, rows = trial.frame(second, problem), []
    for name, candidate in {**agents, **{action: action for action in trial.actions}}.items():
        evaluated = sw.evaluate_on_log(log, problem, candidate, propensity=propensity).candidate
        rows.append(
            {
                "policy": name,
                **format_estimates(evaluated.estimates, problem),
                "people it counts as": round(evaluated.effective_sample_size),
            }
        )
    return rows


def format_estimates(estimates: Mapping[str, Any], problem: sw.Problem) -> dict[str, Any]:
    """Return the doubly robust estimate and interval of every signal; None: unknown."""
    row: dict[str, Any] = {}
    for signal in problem.signals:
        one = estimates[signal]["dr"]
        values = one.to_dict()
        for name, end in ((signal, "value"), (f"{signal}, from", "low"), (f"{signal}, to", "high")):
            row[name] = None if values[end] is None else round(float(values[end]), 4)
    return row


@dataclass(frozen=True)
class Design:
    """How a trial is simulated: with its limit, with others, and with one that never binds."""

    problem: Callable[[float], sw.Problem]
    """Builds the problem for a limit."""
    limit: float
    never: float
    """A limit that never binds."""
    others: tuple[float, ...]
    propensity: Any
    """The propensities of the trial, for `sw.evaluate_on_log`."""
    texts: Mapping[str, Any]
    """The caption and the remarks of its page."""

    def problems(self) -> dict[str, sw.Problem]:
        """Return the problems to simulate."""
        problems = {GUARDED: self.problem(self.limit), UNGUARDED: self.problem(self.never)}
        return problems | {name: self.problem(limit) for name, limit in self.other_limits.items()}

    @property
    def other_limits(self) -> dict[str, float]:
        """The other limits, by name of the policy."""
        return {f"guarded at {limit:.2f}": limit for limit in self.others}

    def policies(self, data: Trial) -> Mapping[str, StudyPolicy]:
        """Return the policies: the problems, the safe action, the trial's own draws, and the best under the limit."""
        people, problems = data.people(), self.problems()
        lots = np.bincount(data.taken, minlength=len(data.actions)) / data.taken.size
        safe = problems[GUARDED].safe_name
        return {
            **{name: TrialLearner(problem, data) for name, problem in problems.items()},
            SAFE: always(people, safe),
            TODAY: FixedPolicy(np.broadcast_to(lots, people.cost.shape)),
            POSSIBLE: find_best_under(people, EVERYBODY, self.limit, safe),
        }

    def play(self, data: Trial, policies: Mapping[str, StudyPolicy], size: Size) -> dict[str, Any]:
        """Simulate all policies, and evaluate them on the second half of the trial."""
        guarded = {name: one for name, one in self.problems().items() if name != UNGUARDED}
        people, tracks = data.people(), tally.simulate_policies(data.people(), policies, *size)
        return {
            **tally.build_result(tracks, EVERYBODY, self.limit, self.other_limits),
            "people": data.taken.size,
            "actions": [summarize_action(data, index, name) for index, name in enumerate(data.actions)],
            "by_group": {name: tally.compute_costs_by_group(people, tracks[name], GROUP) for name in DRAWN},
            "finer": tally.compute_shares_over(tracks[GUARDED], [EVERYBODY, GROUP], self.limit),
            "held_out": evaluate_holdout(data, guarded, self.propensity),
            **self.texts,
        }


def summarize_action(trial: Trial, index: int, name: str) -> dict[str, Any]:
    """Return the means of one action in the trial."""
    taken = trial.taken == index
    means = {
        what: tally.mean([signal[taken].mean()]) for what, signal in (("reward", trial.reward), ("cost", trial.cost))
    }
    return {"action": name, "people": int(taken.sum()), **means}
