"""What a policy would come to, before it is let loose: simulated in the worlds that a log leaves open."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.paths import path_of
from stagewise.launch.forecast.bands import LEVEL
from stagewise.launch.forecast.cases import Case, cases_of, widest
from stagewise.launch.forecast.outlook import Outlook, outlook
from stagewise.launch.forecast.playing import Length, Player, played
from stagewise.launch.forecast.reading import Reading, rate_of
from stagewise.launch.forecast.tied import ties
from stagewise.launch.forecast.worlds import FittedWorlds
from stagewise.launch.log import problem_of
from stagewise.policies.agent.agent import Agent
from stagewise.policies.problem import Problem
from stagewise.problem.checks import seed_of, switch, whole
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.files import made, write_text
from stagewise.simulation.executors import Workers
from stagewise.simulation.plan import versions

FORMAT, VERSION = "stagewise-forecast", 1
FEWEST = 38  # runs: of fewer not even all of them hold nine tenths with 90 % confidence (`bands.tail`)
MOST_ROUNDS = 5_000_000_000
THIN = 100  # rows of an action, below which it is said that there are few


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a policy would come to under each of the limits asked for; `save` writes a page, its picture and JSON."""

    problem: Problem
    outlooks: list[Outlook]
    refused: list[Case]
    length: Length
    runs: int
    rows: int
    learned: str
    notes: list[str]
    manifest: dict[str, Any]

    @property
    def declared(self) -> Outlook:
        """The case of the problem as it is declared."""
        return next(each for each in self.outlooks if each.case.declared)

    def plain(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "problem": self.problem.plain(),
            "days": self.length.days,
            "users_a_day": self.length.users,
            "runs": self.runs,
            "level": LEVEL,
            "rows": self.rows,
            "learned": self.learned,
            "notes": self.notes,
            "cases": [each.plain() for each in self.outlooks],
            "refused": [{"limits": case.values, "why": case.refused} for case in self.refused],
            **self.manifest,
        }

    def __str__(self) -> str:
        from stagewise.launch.forecast.words import table

        return table(self)

    def plot(self) -> Any:
        """Return a matplotlib figure: gains by day, every limited cost, who gets what."""
        from stagewise.launch.forecast.picture import drawn

        return drawn(self)

    def save(self, folder: str | Path) -> None:
        """Write forecast.html, forecast.png and forecast.json."""
        from stagewise.launch.forecast.page import page
        from stagewise.reports.style import write_picture

        place = made(path_of(folder, "the folder"))
        write_text(place / "forecast.json", json.dumps(self.plain(), indent=1))
        write_picture(self.plot(), place / "forecast.png")
        write_text(place / "forecast.html", page(self))


def forecast(
    log: Any,
    problem: Problem | str | Path,
    *,
    limits: Mapping[str, Any] | None = None,
    days: int = 60,
    users: float | None = None,
    runs: int = 100,
    seed: int = 0,
    learn: Any = "all",
    names: Mapping[str, str] | None = None,
    now: Any = None,
    executor: Workers = None,
    progress: bool = True,
) -> Forecast:
    """Return what the policy of a problem would come to in `days` days of `users` users, from a log of what was done.

    `log` is a frame or a file, and `names` leads from names of the problem to columns, where they differ. Users are
    drawn from the log's own rows; what actions are worth is drawn, once for every run, from what the log says of it.
    The policy starts from `learn`: "all" rows; the later "half" by time, where the problem was chosen by a look at the
    other (`stagewise doctor`); "nothing"; or rows of their own. `users` is as in the log where nothing is said.
    `limits` are values to be held against each other, such as {"opt_out": [0.01, 0.02]}. `now` is when the log was
    read, in seconds since 1970 or a datetime: rows whose windows were open then are left out; None: at its last row.
    `seed`, `executor` and `progress` are as for `simulate`.

    >>> import stagewise as sw
    >>> problem = sw.Problem(
    ...     actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"),
    ...     limits={"opt_out": sw.Limit(0.5, safe=0.1)},
    ... )
    >>> log = {"action": ["nothing", "offer"] * 50, "click": [0, 1] * 50, "opt_out": [0, 0] * 50}
    >>> found = forecast(log, problem, days=2, users=5, runs=38)
    >>> bool(found.declared.total_gain.middle > 0), found.declared.over_any
    (True, 0.0)
    """
    told = problem_of(problem)
    reading = Reading.of(log, told, names, now)
    enough = f"of at least {FEWEST}, as all of fewer would not surely hold nine tenths"
    count = whole(runs, "runs", enough, FEWEST, 100_000)
    length = Length(whole(days, "days", "from 1 to 3650", 1, 3650), rate_of(users, reading), seed_of(seed))
    cases, shows = cases_of(told, limits), switch(progress, "progress")
    able = [case for case in cases if case.problem is not None]
    if count * length.rounds * len(able) > MOST_ROUNDS:
        raise InvalidProblem(
            f"{count:,} runs of {length.days:,} days with {length.users:,} users a day under {len(able)} limits are "
            f"more than {MOST_ROUNDS:,} rounds; ask for fewer runs, days or users a day"
        )
    rows, learned = reading.learned(learn, names, now)
    worlds = FittedWorlds.of(reading, length.seed)
    players = [player_of(case, rows) for case in able]
    found = played(worlds, players, count, length, executor, shows)
    most = widest(able)
    outlooks = [
        outlook(case, found[place], length.users, None if place == most else found[most])
        for place, case in enumerate(able)
    ]
    return Forecast(
        problem=told,
        outlooks=outlooks,
        refused=[case for case in cases if case.problem is None],
        length=length,
        runs=count,
        rows=reading.log.rows,
        learned=learned,
        notes=[*reading.notes, *thin(reading), *ties(reading)],
        manifest={"seed": length.seed, "worlds": worlds.description(), "versions": versions()},
    )


def player_of(case: Case, rows: Reading | None) -> Player:
    """Return the policy of a case, with what it learns from the log."""
    assert case.problem is not None
    agent = Agent(case.problem)
    if rows is not None:
        agent.learn_frame(rows.log.frame())
    return Player(case.problem.numbered(), agent.state)


def thin(reading: Reading) -> list[str]:
    """Say of which actions a log tells little: bands are wide there, and rest on what was assumed beforehand."""
    actions = reading.log.problem.actions
    counts = np.bincount(reading.actions, minlength=len(actions))
    told = []
    none = [name for name, count in zip(actions, counts, strict=True) if count == 0]
    few = [f"{name!r} ({count})" for name, count in zip(actions, counts, strict=True) if 0 < count < THIN]
    if none:
        told.append(
            f"the log has no row of {', '.join(map(repr, none))}: what they come to is anything that the problem "
            "allows, and the bands are as wide as that"
        )
    if few:
        told.append(f"the log has few rows of {', '.join(few)}; bands are wide where they are played")
    return told
