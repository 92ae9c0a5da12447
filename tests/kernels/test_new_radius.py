"""Adding a radius changes one file: Python, the compiled loop, regret bounds, files and the GPU use it at once."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tests.grown import changed, copied, insert, ran

from stagewise.kernels.models.arm_means import RATES, compute_interval, unit_radius
from stagewise.kernels.models.radius import RADII, radius

WIDER = 1.5  # times the first radius

BRANCH = f"""    if kind == {len(RADII)}:
        return {WIDER} * math.sqrt(noise * noise * (log_det + 2.0 * confidence) + ridge * bound * bound)
"""
ASK = """
import json
import numpy as np
import stagewise as sw
from stagewise.reports.regret_bound import compute_bound_values
from stagewise.simulation.compiled_run import build_inputs
from stagewise.simulation.gpu import registers
from stagewise.simulation.oracle import build_oracle

def policy(kind, name):
    safe = sw.SafeAction(features=np.zeros(2))
    return kind(safe_action=safe, threshold=0.3, noise=0.1, cost_bound=None, radius=name)

def describe(name):
    world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.Rays(np.eye(2)), noise=0.1)
    lucb, sources = policy(sw.LCLUCB, name), []
    registers.compile_loop = lambda write, form, registers=None: sources.append(write(form))
    oracle = build_oracle(lucb, world)
    registers.build_call(lucb, oracle, build_inputs(lucb, oracle, False))
    hand, loop = (sw.simulate(lucb, world, rounds=20, backend=each, progress=False) for each in ("python", "cpu"))
    mixtures = sw.simulate(policy(sw.OPLB, name), world, rounds=20, progress=False)
    first = lucb.decide(lucb.start(), np.eye(2))
    return {
        "hand": hand.regret[0].tolist(), "loop": loop.regret[0].tolist(), "mixtures": mixtures.regret[0].tolist(),
        "bound": compute_bound_values(lucb, world, np.array([100])).tolist(),
        "step": first.step_size, "reason": first.reason,
        "device": [line.strip() for source in sources for line in source.splitlines() if "radius(" in line],
        "certified": sw.certify(lucb, world, rounds=5, runs=2, progress=False).content["policy"]["settings"]["radius"],
    }

print(json.dumps({name: describe(name) for name in ("joint", "wider")}))
"""


def with_radius(folder: Path, branch: str) -> Path:
    """Return a copy of the package with another radius in its list, and with this branch for it."""
    package = copied(folder)
    file = package / "kernels/models/radius.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"^(Radius = .*)\]$", r'\1, "wider"]', text, flags=re.MULTILINE), encoding="utf-8")
    insert(file, "    if kind == LOGDET:", before=branch)
    return package


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the results of a copy of the package with one more radius, beside the default."""
    package = with_radius(tmp_path_factory.mktemp("radius"), BRANCH)
    assert changed(package) == {"kernels/models/radius.py"}
    return json.loads(ran(package, "-c", ASK, NUMBA_DISABLE_JIT="1"))


@pytest.mark.long
def test_it_widens_bounds_by_hand_and_in_the_loop_alike(results: Any) -> None:
    usual, wider = results["joint"], results["wider"]
    assert wider["hand"] == wider["loop"]
    assert wider["step"] == pytest.approx(usual["step"] / WIDER)
    assert wider["hand"][-1] > usual["hand"][-1]
    assert wider["mixtures"][-1] > usual["mixtures"][-1]


@pytest.mark.long
def test_bounds_on_regret_and_certificates_are_of_it(results: Any) -> None:
    assert results["wider"]["bound"][0] == pytest.approx(WIDER * results["joint"]["bound"][0])
    assert results["wider"]["certified"] == "wider"


def test_the_loop_written_for_a_gpu_calls_it(results: Any) -> None:
    calls = {name: results[name]["device"] for name in ("joint", "wider")}
    assert len(calls["wider"]) == 2
    assert [line.replace(f"radius({len(RADII)},", "radius(0,") for line in calls["wider"]] == calls["joint"]


@pytest.mark.long
def test_a_name_without_a_formula_leaves_nothing_but_the_safe_action(tmp_path: Path) -> None:
    result = json.loads(ran(with_radius(tmp_path, ""), "-c", ASK, NUMBA_DISABLE_JIT="1"))["wider"]
    assert result["step"] == 0.0
    assert result["reason"]
    assert result["hand"] == result["loop"]
    assert result["bound"] == [math.inf]
    assert result["device"] == []  # left to the general loop, which is the CPU's


def test_a_number_without_a_formula_is_no_bound_at_all() -> None:
    assert radius(len(RADII), 1.0, 1.0, 1.0, 3.0, 0.5, 2, 1.0) == math.inf
    assert unit_radius(RATES + 1, 10.0, 3.0) == math.inf
    assert tuple(compute_interval(RATES + 1, 10.0, 0.5, 0.1, 0.0, 3.0)) == (0.0, 1.0)
