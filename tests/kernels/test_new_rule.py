"""A new rule is two files: by hand, in the loop, in audits and in files it is there at once, and a policy names it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.grown import changed, copied, insert, ran

from stagewise.kernels.loop.round import MIXTURE, RAYS, STAY, Form

RULE = '''"""The ray with the largest estimated reward at its longest safe step."""

import math

from stagewise.kernels.answer import SAFE_HOPE
from stagewise.kernels.bounds import CENTRE, HOPED, STEPS
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.promise import PREFERRED, WARMING, weigh
from stagewise.kernels.rules.ray import fill_safe_steps
from stagewise.kernels.rules.tie import first_best, tie_floor


@kernel
def choose_greedy(
    layout: Ints, settings: Floats, bounds: Floats, eligible: Flags, dispute: int, rule: Floats, factors: Floats,
    answer: Floats,
) -> int:  # fmt: skip
    """Maximise the estimated reward of (1 − s) x₀ + s x over rays x, with s the longest safe step on each."""
    hoped, steps, safe = rule[HOPED], rule[STEPS], bounds.shape[2] - 1
    certain = weigh(layout, settings, bounds, factors)
    home = bounds[0, CENTRE, safe]
    hoped[:], steps[:] = home, 0.0
    answer[SAFE_HOPE] = home
    if dispute > 0 or not certain:
        return -dispute if dispute > 0 else -WARMING
    fill_safe_steps(layout, settings, bounds, steps)
    for ray in range(safe):
        hoped[ray] = home + steps[ray] * (bounds[0, CENTRE, ray] - home)
        if eligible.size and not eligible[ray]:
            hoped[ray] = -math.inf
    best = first_best(hoped[:safe])
    return -PREFERRED if best < 0 or tie_floor(home) > hoped[best] else best
'''
POLICY = '''"""The bounds of LC-LUCB under another rule."""

from dataclasses import dataclass
from typing import ClassVar

from stagewise.kernels.loop.round import GREEDY, Form
from stagewise.policies.linear import LinearPolicy


@dataclass(frozen=True, kw_only=True, eq=False)
class Greedy(LinearPolicy):
    """Play the ray that was best so far."""

    form: ClassVar[Form] = Form(ridge=1, rule=GREEDY)
'''
BRANCH = """        if greedy:
            code = choose_greedy(layout, settings, bounds, eligible, dispute, rule, per_limit, answer)
            settle_ray(layout, settings, bounds, rule, code, features, safe, answer, action)
"""
ASK = """
import json
import numpy as np
import stagewise as sw
from stagewise.simulation.compiled import plays

policy = sw.Greedy(safe_action=sw.SafeAction(features=np.zeros(2)), threshold=0.3, noise=0.1)
world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.Rays(np.eye(2)), noise=0.1)
hand, loop = (sw.simulate(policy, world, rounds=40, audit=True, backend=b, progress=False) for b in ("python", "cpu"))
agent = sw.Agent(policy)
agent.learn(agent.decide(np.eye(2)), reward=0.1, cost=0.05)
agent.save("agent.json")
other = sw.Agent.load("agent.json")
print(json.dumps({
    "plays": plays(policy, world),
    "hand": hand.regret[0].tolist(), "loop": loop.regret[0].tolist(), "dearest": loop.max_cost.tolist(),
    "audits": [{name: np.asarray(told).tolist() for name, told in one.audit.items()} for one in (hand, loop)],
    "steps": [one.decide(np.eye(2)).step for one in (agent, other)],
}))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package with the rule in it, and with a policy of it."""
    package = copied(tmp_path_factory.mktemp("rule"))
    (package / "kernels/rules/greedy.py").write_text(RULE, encoding="utf-8")
    round_ = package / "kernels/loop/round.py"
    insert(round_, "STAY, RAYS, MIXTURE = ", after="GREEDY = 100\n")
    insert(
        round_, "from stagewise.kernels.rules.ray", after="from stagewise.kernels.rules.greedy import choose_greedy\n"
    )
    insert(round_, "    mixes, rays, apart = ", after="    greedy = int(form.rule == GREEDY)\n")
    insert(round_, "        if rays:", before=BRANCH)
    assert changed(package) == {"kernels/rules/greedy.py", "kernels/loop/round.py"}
    (package / "policies/greedy.py").write_text(POLICY, encoding="utf-8")
    export = "from stagewise.policies.greedy import Greedy as Greedy\n"
    insert(package / "__init__.pyi", "from stagewise.policies.ucb", before=export)
    return package


def test_it_is_played_by_hand_and_in_the_loop_alike_and_judged_by_the_points_it_plays(
    package: Path, tmp_path: Path
) -> None:
    told: Any = json.loads(ran(package, "-c", ASK, folder=tmp_path, NUMBA_DISABLE_JIT="1"))
    assert told["plays"]
    assert told["hand"] == told["loop"]
    assert told["audits"][0] | {"missed": 0} == told["audits"][1] | {"missed": 0}  # only the loop sees the intervals
    assert told["audits"][1]["missed"] == [[0, 0]]
    assert 0.0 < told["dearest"][0][0] <= 0.3
    assert told["steps"][0] == told["steps"][1] > 0.0


def test_a_form_says_whether_its_rule_mixes_or_plays_points() -> None:
    told = {rule: (Form(rule=rule).mixes, Form(rule=rule).points) for rule in (STAY, RAYS, MIXTURE, 100)}
    assert told == {STAY: (False, False), RAYS: (False, True), MIXTURE: (True, False), 100: (False, True)}
    assert not Form(arms=1, rule=RAYS).points
