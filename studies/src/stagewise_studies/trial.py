"""Randomised trials: nobody's other outcome is known, but what each treatment did to each kind of person is.

Two things are done with one. A policy is *enrolled*: a round draws one of the people with replacement, and what comes
of an action is what came of it for somebody of the same group who was given it in the trial; so the rate of every
action in every group is known. And a policy that learned from one half of the trial is *evaluated* on the other, on
real people and on what they were really given.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.kernels.compile import Floats, Ints
from stagewise_studies import tally
from stagewise_studies.replay import Chooser, Comes, Learner, People, Written, always, best_under
from stagewise_studies.study import DRAWN, GUARDED, POSSIBLE, SAFE, TODAY, UNGUARDED, Size

EVERYBODY, GROUP = "everybody", "group"


@dataclass(frozen=True)
class Trial:
    """n people of a randomised trial: what each is known by, was given, and what came of it."""

    actions: tuple[str, ...]
    took: Ints  # (n,) which action
    contexts: list[dict[str, Any]]  # by name
    reward: Floats  # (n,)
    cost: Floats  # (n,)
    groups: Ints  # (n,) kinds of people, each of whom every action was given to some

    def people(self) -> People:
        """Return the people with the mean of every action in their group: what policies are judged by."""
        reward, cost = (self.rates(of)[self.groups] for of in (self.reward, self.cost))
        ways = {EVERYBODY: np.zeros_like(self.groups), GROUP: self.groups}
        return People(self.actions, self.contexts, reward, cost, ways)

    def rates(self, of: Floats) -> Floats:
        """Return the mean (groups, K) of what came of every action."""
        return np.array([[of[rows].mean() for rows in row] for row in self.cells()])

    def cells(self) -> list[list[Ints]]:
        """Return who of each group was given each action."""
        ways = range(int(self.groups.max()) + 1), range(len(self.actions))
        return [[np.flatnonzero((self.groups == g) & (self.took == a)) for a in ways[1]] for g in ways[0]]

    def frame(self, rows: Any, problem: sw.Problem) -> dict[str, Any]:
        """Return some of the rows as the log of a problem with one limit."""
        some, (limit,) = np.arange(self.took.size)[rows], problem.limits
        told: dict[str, Any] = {"action": [self.actions[place] for place in self.took[some]]}
        told |= {name: [self.contexts[row][name] for row in some] for name in problem.expected}
        return told | {problem.reward.name: self.reward[some], limit: self.cost[some]}


@dataclass(frozen=True)
class Enrolled(Learner):
    """A problem with one limit, played by an agent on people of a trial."""

    trial: Trial

    def comes(self, people: People) -> Comes:
        """Return what comes of an action: what came of it for somebody of the person's group."""
        trial, cells = self.trial, self.trial.cells()

        def seen(person: int, place: int, chance: float) -> tuple[float, float]:
            alike = cells[trial.groups[person]][place]
            like = alike[int(chance * alike.size)]
            return trial.reward[like], trial.cost[like]

        return seen


def halves(trial: Trial, seed: int = 0) -> tuple[Ints, Ints]:
    """Return the rows of two halves, drawn once and for all."""
    order = np.random.default_rng([seed, 3]).permutation(trial.took.size)
    return np.sort(order[: order.size // 2]), np.sort(order[order.size // 2 :])


def held_out(trial: Trial, problems: Mapping[str, sw.Problem], propensity: Any) -> list[dict[str, Any]]:
    """Return what the second half of a trial says of agents that learned from the first, and of every action."""
    first, second = halves(trial)
    problem, agents = next(iter(problems.values())), {}
    for name, one in problems.items():
        agents[name] = sw.Agent(one, seed=0)
        agents[name].learn_frame(trial.frame(first, one))
    log, rows = trial.frame(second, problem), []
    for name, candidate in {**agents, **{action: action for action in trial.actions}}.items():
        told = sw.evaluate(log, problem, candidate, propensity=propensity).candidate
        rows.append({"policy": name, **ends(told.estimates, problem), "people it counts as": round(told.effective)})
    return rows


def ends(estimates: Mapping[str, Any], problem: sw.Problem) -> dict[str, Any]:
    """Return the doubly robust estimate and interval of every signal; None where the log does not tell."""
    told: dict[str, Any] = {}
    for signal in problem.signals:
        one = estimates[signal]["dr"]
        plain = one.plain()
        for name, end in ((signal, "value"), (f"{signal}, from", "low"), (f"{signal}, to", "high")):
            told[name] = None if plain[end] is None else round(float(plain[end]), 4)
    return told


@dataclass(frozen=True)
class Design:
    """How a trial is played: under its limit, under others, and by the same learner whose limit never matters."""

    problem: Callable[[float], sw.Problem]
    """What is declared, for a limit."""
    limit: float
    never: float
    """A limit that never matters."""
    others: tuple[float, ...]
    propensity: Any
    """How likely the trial's own lots were, as `sw.evaluate` takes it."""
    words: Mapping[str, Any]
    """The caption and the remarks of its page."""

    def problems(self) -> dict[str, sw.Problem]:
        """Return what is played."""
        told = {GUARDED: self.problem(self.limit), UNGUARDED: self.problem(self.never)}
        return told | {name: self.problem(limit) for name, limit in self.other_limits.items()}

    @property
    def other_limits(self) -> dict[str, float]:
        """The other limits, by what is played under them."""
        return {f"guarded at {limit:.2f}": limit for limit in self.others}

    def policies(self, data: Trial) -> Mapping[str, Chooser]:
        """Return who plays: the problems, the safe action, the trial's own lots, and the best under the limit."""
        people, problems = data.people(), self.problems()
        lots = np.bincount(data.took, minlength=len(data.actions)) / data.took.size
        safe = problems[GUARDED].safe
        return {
            **{name: Enrolled(problem, data) for name, problem in problems.items()},
            SAFE: always(people, safe),
            TODAY: Written(np.broadcast_to(lots, people.cost.shape)),
            POSSIBLE: best_under(people, EVERYBODY, self.limit, safe),
        }

    def play(self, data: Trial, policies: Mapping[str, Chooser], size: Size) -> dict[str, Any]:
        """Play all, and evaluate on the half of the trial that nothing was learned from."""
        guarded = {name: one for name, one in self.problems().items() if name != UNGUARDED}
        people, tracks = data.people(), tally.played(data.people(), policies, *size)
        return {
            **tally.told(tracks, EVERYBODY, self.limit, self.other_limits),
            "people": data.took.size,
            "actions": [of_action(data, place, name) for place, name in enumerate(data.actions)],
            "by_group": {name: tally.by_group(people, tracks[name], GROUP) for name in DRAWN},
            "finer": tally.shares_over(tracks[GUARDED], [EVERYBODY, GROUP], self.limit),
            "held_out": held_out(data, guarded, self.propensity),
            **self.words,
        }


def of_action(trial: Trial, place: int, name: str) -> dict[str, Any]:
    """Return what the trial says of one action."""
    took = trial.took == place
    means = {what: tally.mean([of[took].mean()]) for what, of in (("reward", trial.reward), ("cost", trial.cost))}
    return {"action": name, "people": int(took.sum()), **means}
