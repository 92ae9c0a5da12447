"""Worlds fitted to a log: each run draws its own from the posterior."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.random import INSTANCE, fill_normal, fill_uniform, to_signed_seed
from stagewise.launch.forecast.forecast_log import ForecastLog
from stagewise.launch.forecast.linear_posterior import LinearPosterior
from stagewise.launch.forecast.rate_posterior import RatePosterior
from stagewise.worlds.user_table_world import UserTableWorld
from stagewise.worlds.world import check_run

MAX_USERS = 20_000  # users of a world, drawn from the log
MAX_LOG_USERS = 100_000  # users to draw from; of a longer log every k-th row
MEANS, USERS = 0, 1  # rounds of the instance stream: for means, and for users


@dataclass(frozen=True, eq=False)
class FittedWorlds:
    """A world for every run: users resampled from the log, and means drawn from their posterior.

    A run is as uncertain as the log: users, means and outcomes are random.
    """

    users: Floats  # (n, 1 + numbers + divisions) of the log
    groups: dict[int, Any]  # segment codes (n,) by division
    signals: list[RatePosterior | LinearPosterior]
    by: list[int | None]  # the division of each signal's rates
    noise: Floats  # (1 + m,) as for `UserTableWorld`
    divisions: int
    safe: int
    seed: int

    @classmethod
    def of(cls, log_rows: ForecastLog, seed: int) -> "FittedWorlds":
        """Return the worlds fitted to a log."""
        problem = log_rows.log.problem
        divisions, count = len(problem.divisions), len(problem.actions)
        numbers = log_rows.users[:, : 1 + len(problem.context)]
        groups = {
            index: np.unique(log_rows.users[:, 1 + len(problem.context) + index], return_inverse=True)[1]
            for index in range(divisions)
        }
        models: list[RatePosterior | LinearPosterior] = []
        by: list[int | None] = []
        for index, choice in enumerate(problem.choices.values()):
            division = None if choice.by is None else problem.divisions.index(choice.by)
            outcomes = log_rows.values[:, index]
            group = None if division is None else groups[division]
            by.append(division)
            if choice.model == "linear":
                models.append(LinearPosterior.of(log_rows.actions, numbers, outcomes, count))
            else:
                models.append(RatePosterior.of(log_rows.actions, group, outcomes, count))
        safe_index = list(problem.actions).index(problem.safe)
        unscaled = cls(log_rows.users, groups, models, by, np.ones(len(models)), divisions, safe_index, seed)
        noise = [unscaled.estimate_noise(index, log_rows) for index in range(len(models))]
        sampled = slice(None, None, -(-len(log_rows.users) // MAX_LOG_USERS))
        groups = {index: group[sampled] for index, group in groups.items()}
        return cls(log_rows.users[sampled], groups, models, by, np.array(noise), divisions, safe_index, seed)

    def estimate_noise(self, index: int, log_rows: ForecastLog) -> float:
        """Return the noise of single outcomes of a signal relative to binary ones, at most 1."""
        values = log_rows.values[:, index]
        if np.isin(values, (0.0, 1.0)).all():
            return 1.0
        model = self.signals[index]
        middle = np.zeros(model.sample_size) if isinstance(model, LinearPosterior) else np.full(model.sample_size, 0.5)
        means = self.means(index, middle, np.arange(len(self.users)))[np.arange(len(values)), log_rows.actions]
        room = float((means * (1.0 - means)).sum())
        return min(float(np.sqrt(np.square(values - means).sum() / room)), 1.0) if room > 0.0 else 1.0

    def means(self, index: int, numbers: Floats, rows: Any) -> Floats:
        """Return a draw of the means (n, K) of one signal, for some users."""
        model, division = self.signals[index], self.by[index]
        if isinstance(model, LinearPosterior):
            return model.sample(numbers, self.users[rows, : model.centres.shape[1]])
        table = model.sample(numbers)
        segments = np.zeros(len(rows), dtype=np.int64) if division is None else self.groups[division][rows]
        return np.asarray(table[segments])

    def __call__(self, run: int) -> UserTableWorld:
        """Return the world of a run."""
        key, number = to_signed_seed(self.seed), check_run(run)
        uniforms = np.empty(min(len(self.users), MAX_USERS))
        fill_uniform(uniforms, key, number, USERS, INSTANCE)
        rows = np.minimum((uniforms * len(self.users)).astype(np.int64), len(self.users) - 1)
        drawn = np.empty(sum(model.sample_size for model in self.signals))
        kinds = [fill_normal if isinstance(model, LinearPosterior) else fill_uniform for model in self.signals]
        tables, first = [], 0
        for index, (model, kind) in enumerate(zip(self.signals, kinds, strict=True)):
            kind(drawn, key, number, MEANS, INSTANCE)
            tables.append(self.means(index, drawn[first : first + model.sample_size], rows))
            first += model.sample_size
        return UserTableWorld(
            users=self.users[rows, 1:],
            reward=tables[0],
            cost=np.stack(tables[1:]),
            noise=self.noise,
            safe=self.safe,
            segment_columns=self.divisions,
        )

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the data that the worlds are drawn from."""
        parts = [self.users, self.noise, *(array for model in self.signals for array in vars(model).values())]
        return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()

    def description(self) -> dict[str, Any]:
        """Return the family as JSON values."""
        return {"family": "fitted", "seed": self.seed, "rows": len(self.users), "digest": self.digest}
