"""Worlds fitted to a log: for every run its own, as far apart as the log leaves it open."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.draw import INSTANCE, fill_normal, fill_uniform, signed
from stagewise.launch.forecast.rates import Rates
from stagewise.launch.forecast.reading import Reading
from stagewise.launch.forecast.slopes import Slopes
from stagewise.worlds.logged import LoggedWorld
from stagewise.worlds.world import run_of

MOST = 20_000  # users that a world has; a longer log's are drawn from
KEPT = 100_000  # users that are drawn from: of a longer log every so many-th row
MEANS, USERS = 0, 1  # rounds of the stream of instances: what is drawn of the means, and of the users


@dataclass(frozen=True, eq=False)
class FittedWorlds:
    """For every run a world: users out of the log, drawn again, and means that the log allows, drawn once.

    A run is then as uncertain as the log is: who comes, what actions are worth, and what happens by chance.
    """

    users: Floats  # (n, 1 + numbers + divisions) of the log
    groups: dict[int, Any]  # (n,) which segment, by the division's place
    signals: list[Rates | Slopes]
    by: list[int | None]  # by which division each signal's rates are kept
    noise: Floats  # (1 + m,) as a `LoggedWorld` has it
    divisions: int
    safe: int
    seed: int

    @classmethod
    def of(cls, reading: Reading, seed: int) -> "FittedWorlds":
        """Return the worlds that a log allows."""
        problem = reading.log.problem
        divisions, count = len(problem.divisions), len(problem.actions)
        numbers = reading.users[:, : 1 + len(problem.context)]
        groups = {
            place: np.unique(reading.users[:, 1 + len(problem.context) + place], return_inverse=True)[1]
            for place in range(divisions)
        }
        models: list[Rates | Slopes] = []
        by: list[int | None] = []
        for place, choice in enumerate(problem.choices.values()):
            division = None if choice.by is None else problem.divisions.index(choice.by)
            seen = reading.values[:, place]
            group = None if division is None else groups[division]
            by.append(division)
            if choice.model == "linear":
                models.append(Slopes.of(reading.actions, numbers, seen, count))
            else:
                models.append(Rates.of(reading.actions, group, seen, count))
        home = list(problem.actions).index(problem.safe)
        made = cls(reading.users, groups, models, by, np.ones(len(models)), divisions, home, seed)
        noise = [made.spread(place, reading) for place in range(len(models))]
        some = slice(None, None, -(-len(reading.users) // KEPT))
        groups = {place: group[some] for place, group in groups.items()}
        return cls(reading.users[some], groups, models, by, np.array(noise), divisions, home, seed)

    def spread(self, place: int, reading: Reading) -> float:
        """Return how far single outcomes of a signal are from their means: 1 is 0 or 1, and nothing is further."""
        values = reading.values[:, place]
        if np.isin(values, (0.0, 1.0)).all():
            return 1.0
        model = self.signals[place]
        middle = np.zeros(model.draws) if isinstance(model, Slopes) else np.full(model.draws, 0.5)
        means = self.means(place, middle, np.arange(len(self.users)))[np.arange(len(values)), reading.actions]
        room = float((means * (1.0 - means)).sum())
        return min(float(np.sqrt(np.square(values - means).sum() / room)), 1.0) if room > 0.0 else 1.0

    def means(self, place: int, numbers: Floats, rows: Any) -> Floats:
        """Return a draw of the means (n, K) of one signal, for some users."""
        model, division = self.signals[place], self.by[place]
        if isinstance(model, Slopes):
            return model.drawn(numbers, self.users[rows, : model.centres.shape[1]])
        table = model.drawn(numbers)
        segments = np.zeros(len(rows), dtype=np.int64) if division is None else self.groups[division][rows]
        return np.asarray(table[segments])

    def __call__(self, run: int) -> LoggedWorld:
        """Return the world of a run."""
        key, number = signed(self.seed), run_of(run)
        chances = np.empty(min(len(self.users), MOST))
        fill_uniform(chances, key, number, USERS, INSTANCE)
        rows = np.minimum((chances * len(self.users)).astype(np.int64), len(self.users) - 1)
        drawn = np.empty(sum(model.draws for model in self.signals))
        kinds = [fill_normal if isinstance(model, Slopes) else fill_uniform for model in self.signals]
        tables, first = [], 0
        for place, (model, kind) in enumerate(zip(self.signals, kinds, strict=True)):
            kind(drawn, key, number, MEANS, INSTANCE)
            tables.append(self.means(place, drawn[first : first + model.draws], rows))
            first += model.draws
        return LoggedWorld(
            users=self.users[rows, 1:],
            reward=tables[0],
            cost=np.stack(tables[1:]),
            noise=self.noise,
            safe=self.safe,
            divisions=self.divisions,
        )

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of what the worlds are drawn from."""
        parts = [self.users, self.noise, *(array for model in self.signals for array in vars(model).values())]
        return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()

    def description(self) -> dict[str, Any]:
        """Return the family as plain values."""
        return {"family": "fitted", "seed": self.seed, "rows": len(self.users), "digest": self.digest}
