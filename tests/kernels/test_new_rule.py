"""Adding a rule changes two files: Python, the compiled loop, audits and files use it, and a policy names it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.grown import changed, copied, insert, ran

from stagewise.kernels.loop.round import ALWAYS_SAFE, MIXTURE, RAYS, RoundSpec

RULE = '''"""The ray with the largest estimated reward at its longest safe step."""

import math

from stagewise.kernels.answer import SAFE_OPTIMISTIC_REWARD
from stagewise.kernels.bounds import CENTRE, OPTIMISTIC_REWARDS, STEPS
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.constraints import NO_BETTER_ACTION, SAFE_ACTION_COST_UNCERTAIN, compute_bonus_factors
from stagewise.kernels.rules.ray import fill_safe_steps
from stagewise.kernels.rules.tie import first_best, tie_floor


@kernel
def choose_greedy(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, contradiction: int, rule: Floats, factors: Floats,
    answer: Floats,
) -> int:  # fmt: skip
    """Maximise the estimated reward of (1 − s) x₀ + s x over rays x, with s the longest safe step on each."""
    rewards, steps, safe = rule[OPTIMISTIC_REWARDS], rule[STEPS], bounds.shape[2] - 1
    certain = compute_bonus_factors(layout, settings, bounds, factors)
    safe_reward = bounds[0, CENTRE, safe]
    rewards[:], steps[:] = safe_reward, 0.0
    answer[SAFE_OPTIMISTIC_REWARD] = safe_reward
    if contradiction > 0 or not certain:
        return -contradiction if contradiction > 0 else -SAFE_ACTION_COST_UNCERTAIN
    fill_safe_steps(layout, settings, bounds, steps)
    for ray in range(safe):
        rewards[ray] = safe_reward + steps[ray] * (bounds[0, CENTRE, ray] - safe_reward)
        if eligible.size and not eligible[ray]:
            rewards[ray] = -math.inf
    best = first_best(rewards[:safe])
    return -NO_BETTER_ACTION if best < 0 or tie_floor(safe_reward) > rewards[best] else best
'''
POLICY = '''"""The bounds of LC-LUCB under another rule."""

from dataclasses import dataclass
from typing import ClassVar

from stagewise.kernels.loop.round import GREEDY, RoundSpec
from stagewise.policies.linear_policy import LinearPolicy


@dataclass(frozen=True, kw_only=True, eq=False)
class Greedy(LinearPolicy):
    """Play the ray that was best so far."""

    round_spec: ClassVar[RoundSpec] = RoundSpec(ridge=1, rule=GREEDY)
'''
BRANCH = """        if greedy:
            code = choose_greedy(layout, settings, bounds, eligible, contradiction, rule, per_limit, answer)
            finish_ray(layout, settings, bounds, rule, code, features, safe, answer, action)
"""
ASK = """
import json
import numpy as np
import stagewise as sw
from stagewise.simulation.compiled_run import can_play

policy = sw.Greedy(safe_action=sw.SafeAction(features=np.zeros(2)), threshold=0.3, noise=0.1)
world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.Rays(np.eye(2)), noise=0.1)
hand, loop = (sw.simulate(policy, world, rounds=40, audit=True, backend=b, progress=False) for b in ("python", "cpu"))
agent = sw.Agent(policy)
agent.learn(agent.decide(np.eye(2)), reward=0.1, cost=0.05)
agent.save("agent.json")
other = sw.Agent.load("agent.json")
print(json.dumps({
    "can_play": can_play(policy, world),
    "hand": hand.regret[0].tolist(), "loop": loop.regret[0].tolist(), "max_cost": loop.max_cost.tolist(),
    "audits": [{name: np.asarray(value).tolist() for name, value in one.audit.items()} for one in (hand, loop)],
    "steps": [one.decide(np.eye(2)).step_size for one in (agent, other)],
}))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package with the rule in it, and with a policy of it."""
    package = copied(tmp_path_factory.mktemp("rule"))
    (package / "kernels/rules/greedy.py").write_text(RULE, encoding="utf-8")
    round_ = package / "kernels/loop/round.py"
    insert(round_, "ALWAYS_SAFE, RAYS, MIXTURE = ", after="GREEDY = 100\n")
    insert(
        round_, "from stagewise.kernels.rules.ray", after="from stagewise.kernels.rules.greedy import choose_greedy\n"
    )
    insert(round_, "    mixes, rays, separate_models = ", after="    greedy = int(round_spec.rule == GREEDY)\n")
    insert(round_, "        if rays:", before=BRANCH)
    assert changed(package) == {"kernels/rules/greedy.py", "kernels/loop/round.py"}
    (package / "policies/greedy.py").write_text(POLICY, encoding="utf-8")
    export = "from stagewise.policies.greedy import Greedy as Greedy\n"
    insert(package / "__init__.pyi", "from stagewise.policies.ucb", before=export)
    return package


def test_it_is_played_by_hand_and_in_the_loop_alike_and_judged_by_the_points_it_plays(
    package: Path, tmp_path: Path
) -> None:
    result: Any = json.loads(ran(package, "-c", ASK, folder=tmp_path, NUMBA_DISABLE_JIT="1"))
    assert result["can_play"]
    assert result["hand"] == result["loop"]
    assert result["audits"][0] | {"missed": 0} == result["audits"][1] | {"missed": 0}  # only the loop counts misses
    assert result["audits"][1]["missed"] == [[0, 0]]
    assert 0.0 < result["max_cost"][0][0] <= 0.3
    assert result["steps"][0] == result["steps"][1] > 0.0


def test_a_form_says_whether_its_rule_mixes_or_plays_points() -> None:
    kinds = {
        rule: (RoundSpec(rule=rule).mixes, RoundSpec(rule=rule).points) for rule in (ALWAYS_SAFE, RAYS, MIXTURE, 100)
    }
    assert kinds == {ALWAYS_SAFE: (False, False), RAYS: (False, True), MIXTURE: (True, False), 100: (False, True)}
    assert not RoundSpec(arms=1, rule=RAYS).points
