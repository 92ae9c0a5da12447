"""A model is one value and a rule is one value: both are added here, in process, and played by hand and in the loop."""

import math
import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.compile import Flags, Floats, Ints, kernel
from stagewise.engine.layout import ModelBlock, copy_values, get_model_block, get_safe_action, read_block_fields
from stagewise.engine.model import ALWAYS_SAFE, Model, RoundSpec, Rule, start_with_zeros
from stagewise.engine.pair import first_best, tie_floor
from stagewise.engine.round import build_round
from stagewise.engine.workspace import (
    CENTRE,
    HALF,
    NO_BETTER_ACTION,
    OPTIMISTIC_REWARDS,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_OPTIMISTIC_REWARD,
    STEPS,
    compute_bonus_factors,
    get_decision_views,
)
from stagewise.models.arms import ARMS
from stagewise.models.diagnostics import ModelDiagnostics
from stagewise.models.model_block import ModelBlockSpec
from stagewise.models.per_candidate import PER_CANDIDATE_RIDGE
from stagewise.models.per_round_ridge import PER_ROUND_RIDGE
from stagewise.models.ridge import RIDGE
from stagewise.policies.settings import set_rounds
from stagewise.rules.mixture import MIXTURE
from stagewise.rules.ray import RAY, fill_safe_steps, finish_ray

NOISE, CONFIDENCE, ROUNDS = 0.5, math.log(200.0), 60


def means_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of pulls and sums: (1 + k) K."""
    block = read_block_fields(layout, index)
    return (1 + block.signals) * block.size


@kernel
def fill_mean_bounds(
    layout: Ints, block: ModelBlock, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write mean ± R √(2 log(1/δ)/n) of every arm; the first is the safe one."""
    noise, confidence = settings[block.settings], settings[block.settings + 1]
    for signal in range(block.signals):
        centre, half = bounds[block.first + signal, CENTRE], bounds[block.first + signal, HALF]
        for arm in range(block.size):
            pulls = max(memory[block.memory + arm], 1.0)
            centre[arm] = memory[block.memory + (1 + signal) * block.size + arm] / pulls
            half[arm] = noise * math.sqrt(2.0 * confidence / pulls)
        centre[block.size], half[block.size] = 0.0, 0.0


@kernel
def check_nothing(layout: Ints, block: ModelBlock, settings: Floats, memory: Floats, bounds: Floats) -> int:
    """Return 0: nothing is tested."""
    return 0


@kernel
def learn_sum(
    layout: Ints, block: ModelBlock, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Count the pull of an arm and add its outcome."""
    arm = max(index, 0)
    memory[block.memory + arm] += 1.0
    for signal in range(block.signals):
        memory[block.memory + (1 + signal) * block.size + arm] += observed[signal]


@kernel
def widen_means(layout: Ints, old: ModelBlock, new: ModelBlock, memory: Floats, changed: Floats) -> None:
    """Copy everything."""
    copy_values(memory, old.memory, changed, new.memory, (1 + old.signals) * old.size)


@kernel
def change_means(
    layout: Ints, old: ModelBlock, new: ModelBlock, features: Floats, settings: Floats, memory: Floats, changed: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Copy everything: arms are not cached."""
    widen_means(layout, old, new, memory, changed)


MEANS = Model(
    f"{__name__}:MEANS", get_model_block, means_size, start_with_zeros, fill_mean_bounds, check_nothing, learn_sum,
    change_means, widen_means, diagnostics=ModelDiagnostics(), between=0,
)  # fmt: skip


@kernel
def play_greedy(
    features: Floats, eligible: Flags, contradiction: int, layout: Ints, settings: Floats, bounds: Floats, rule: Floats,
    factors: Floats, basis: Floats | None, answer: Floats, seed: int, run: int, round_: int,
) -> int:  # fmt: skip
    """Maximise the estimated reward of (1 − s) x₀ + s x over rays x, with s the longest safe step on each."""
    rewards, steps, safe, code = rule[OPTIMISTIC_REWARDS], rule[STEPS], bounds.shape[2] - 1, -NO_BETTER_ACTION
    certain, safe_reward = compute_bonus_factors(layout, settings, bounds, factors), bounds[0, CENTRE, safe]
    rewards[:] = safe_reward
    steps[:] = 0.0
    answer[SAFE_OPTIMISTIC_REWARD] = safe_reward
    if contradiction > 0 or not certain:
        code = -contradiction if contradiction > 0 else -SAFE_ACTION_COST_UNCERTAIN
    else:
        fill_safe_steps(layout, settings, bounds, steps)
        for ray in range(safe):
            rewards[ray] = safe_reward + steps[ray] * (bounds[0, CENTRE, ray] - safe_reward)
        best = first_best(rewards[:safe])
        if best >= 0 and not tie_floor(safe_reward) > rewards[best]:
            code = best
    origin, action = get_safe_action(layout, settings).features, get_decision_views(layout, answer).action
    finish_ray(layout, settings, bounds, rule, code, features, origin, answer, action)
    return code


GREEDY = Rule(f"{__name__}:GREEDY", play_greedy)


@dataclass(frozen=True, kw_only=True, eq=False)
class Means(sw.OPB):
    """OPB with the new model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        m = self.thresholds.values.size
        block = ModelBlockSpec(MEANS, (0, 1 + m, self.arms, 0, 0, 0, 0, 0), np.array([NOISE, CONFIDENCE]))
        set_rounds(self, self.rule, self.thresholds, np.ones(m), (block,), switches=self.switches, safe_index=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Greedy(sw.LCLUCB):
    """LC-LUCB with the new rule."""

    rule: ClassVar[Rule] = GREEDY


def arms() -> tuple[Any, Any]:
    world = sw.ArmsWorld(reward=[0.1, 0.5, 0.8], cost=[0.05, 0.2, 0.9], outcomes="bernoulli")
    return Means(arms=3, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.05), threshold=0.6), world


def rays() -> tuple[Any, Any]:
    world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(np.eye(2)), noise=0.1)
    return Greedy(safe_action=sw.SafeAction(features=np.zeros(2)), threshold=0.3, noise=0.1), world


@pytest.mark.parametrize("build", [arms, rays])
def test_it_is_played_by_hand_and_in_the_loop_alike(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, world = build()
    by_hand = sw.simulate(policy, world, rounds=ROUNDS, backend="python", progress=False)
    monkeypatch.setattr(type(policy), "__module__", "stagewise.policies.new")  # only ours are played by the loop
    looped = sw.simulate(policy, world, rounds=ROUNDS, backend="cpu", audit=True, progress=False)
    assert np.array_equal(by_hand.regret, looped.regret)
    assert len(np.unique(np.diff(by_hand.regret[0]).round(9))) > 2  # more than one thing was played


@pytest.mark.parametrize("value", [MEANS, GREEDY, RIDGE, ARMS, RAY, MIXTURE], ids=lambda value: value.name)
def test_a_value_is_known_by_its_name(value: Any) -> None:
    again = pickle.loads(pickle.dumps(value)) if value.name.startswith("stagewise") else value
    assert again == value
    assert hash(again) == hash(value)


def test_two_models_that_adjust_all_bounds_do_not_share_a_round() -> None:
    with pytest.raises(ValueError, match="PER_ROUND_RIDGE"):
        build_round(RoundSpec((PER_CANDIDATE_RIDGE, PER_ROUND_RIDGE), RAY))


def test_a_spec_knows_whether_its_rule_mixes_or_plays_points() -> None:
    specs = [RoundSpec(), RoundSpec((RIDGE,), RAY), RoundSpec((RIDGE,), MIXTURE), RoundSpec((ARMS,), RAY)]
    assert [(spec.mixes, spec.points) for spec in specs] == [
        (False, False),
        (False, True),
        (True, False),
        (False, False),
    ]
    assert RoundSpec().rule == ALWAYS_SAFE
