"""What a problem's policy decides for many users at once: for each the same as alone, to the bit."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Ints, rows_at_once
from stagewise.kernels.layout import HOME
from stagewise.kernels.loop.users import OUTSIDE, users_for
from stagewise.kernels.promise import DISPUTED, DRAWN
from stagewise.policies.arrays import sized
from stagewise.policies.named_caps import NamedCAPS
from stagewise.policies.policy import State
from stagewise.policies.problem import Problem
from stagewise.policies.settings import CAUSES
from stagewise.records.draw import Draw
from stagewise.records.reason import Cause

PLAIN = {float, int}  # what a number about a user may be without a question


class Played(NamedTuple):
    """What is played for one user."""

    index: int  # type: ignore[assignment]  # (a tuple has a method of that name)
    odds: list[float]
    """Of all actions, in their order."""
    hoped: float
    dearest: list[float]
    cause: Cause | None
    estimated_reward: float
    estimated_cost: list[float]


def numbers_of(problem: Problem, context: Mapping[str, Any]) -> list[Any] | None:
    """Return the numbers about a user, where all are plain and nothing else is told; None: ask for this one alone."""
    if len(context) != len(problem.expected) or not all(map(context.__contains__, problem.expected)):
        return None
    values = [context[name] for name in problem.context]
    return values if PLAIN.issuperset(map(type, values)) else None


def choose_all(
    policy: NamedCAPS,
    state: State,
    numbers: Sequence[Any],
    segments: Sequence[Any],
    eligible: Flags,
    draws: Sequence[Draw] | Ints,
) -> list[Played | None]:
    """Decide for users of these numbers (n, c) and segments (n, g); None: ask for this one alone.

    That is where a number is outside its range, and where something contradicts what was declared.
    """
    count, actions, m = len(draws), policy.actions, policy.thresholds.values.size
    values = np.array(numbers, dtype=np.float64).reshape(count, policy.context)
    met = np.array(segments, dtype=np.float64).reshape(count, policy.segments)
    needs = policy.needs(policy.form, policy.width, actions, policy.width)
    codes, told, odds = np.empty(count, dtype=np.int64), np.empty((count, 1 + m)), np.empty((count, actions + 1))
    estimates = np.empty((count, 1 + m))
    decide_users, keys, done = users_for(sized(policy.form, *policy.counted)), np.array(draws, dtype=np.int64), 0
    while done < count:
        few = slice(done, min(done + rows_at_once(decide_users), count))
        decide_users(
            values[few], policy.problem.ends, met[few], keys[few], policy._template.copy(), eligible,
            policy.layout, policy.settings, state.memory, codes[few], told[few], estimates[few], odds[few],
            np.empty(needs.answer), np.empty(policy.context), np.empty(needs.scratch),
        )  # fmt: skip
        done = few.stop
    low, length = policy.reward_span
    hoped, dearest = (low + length * told[:, 0]).tolist(), policy.presented.in_units(told[:, 1:]).tolist()
    means, costs = (low + length * estimates[:, 0]).tolist(), policy.presented.in_units(estimates[:, 1:]).tolist()
    home, chances = policy.layout.item(HOME), odds[:, :-1].tolist()
    return [
        None if code <= -DISPUTED or code == OUTSIDE else Played(
            code if code >= 0 else home, chances[i], hoped[i], dearest[i],
            None if code >= 0 or code == -DRAWN else CAUSES.get(-code), means[i], costs[i],
        )
        for i, code in enumerate(codes.tolist())
    ]  # fmt: skip
