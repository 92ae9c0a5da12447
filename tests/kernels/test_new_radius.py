"""A new radius is one file: by hand, in the loop, in bounds on regret, in files and on a GPU it is there at once."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tests.grown import changed, copied, insert, ran

from stagewise.kernels.signals.arms import RATES, interval, unit_radius
from stagewise.kernels.signals.radius import RADII, radius

WIDER = 1.5  # times the first radius

BRANCH = f"""    if kind == {len(RADII)}:
        return {WIDER} * math.sqrt(noise * noise * (log_det + 2.0 * confidence) + ridge * bound * bound)
"""
ASK = """
import json
import numpy as np
import stagewise as sw
from stagewise.reports.regret_bound import bound_values
from stagewise.simulation.compiled import inputs_for
from stagewise.simulation.gpu import registers
from stagewise.simulation.judge import judge

def policy(kind, name):
    safe = sw.SafeAction(features=np.zeros(2))
    return kind(safe_action=safe, threshold=0.3, noise=0.1, cost_bound=None, radius=name)

def shown(name):
    world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.Rays(np.eye(2)), noise=0.1)
    lucb, written = policy(sw.LCLUCB, name), []
    registers.compiled = lambda writing, form, registers=None: written.append(writing(form))
    registers.call_for(lucb, judge(lucb, world), inputs_for(lucb, judge(lucb, world), False))
    hand, loop = (sw.simulate(lucb, world, rounds=20, backend=each, progress=False) for each in ("python", "cpu"))
    mixtures = sw.simulate(policy(sw.OPLB, name), world, rounds=20, progress=False)
    first = lucb.decide(lucb.start(), np.eye(2))
    return {
        "hand": hand.regret[0].tolist(), "loop": loop.regret[0].tolist(), "mixtures": mixtures.regret[0].tolist(),
        "bound": bound_values(lucb, world, np.array([100])).tolist(), "step": first.step, "why": first.fallback,
        "device": [line.strip() for source in written for line in source.splitlines() if "radius(" in line],
        "told": sw.certify(lucb, world, rounds=5, runs=2, progress=False).content["policy"]["settings"]["radius"],
    }

print(json.dumps({name: shown(name) for name in ("joint", "wider")}))
"""


def with_radius(folder: Path, branch: str) -> Path:
    """Return a copy of the package with another radius in its list, and with this branch for it."""
    package = copied(folder)
    file = package / "kernels/signals/radius.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"^(Radius = .*)\]$", r'\1, "wider"]', text, flags=re.MULTILINE), encoding="utf-8")
    insert(file, "    if kind == LOGDET:", before=branch)
    return package


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what a copy of the package with one more radius makes of it, beside the first."""
    package = with_radius(tmp_path_factory.mktemp("radius"), BRANCH)
    assert changed(package) == {"kernels/signals/radius.py"}
    return json.loads(ran(package, "-c", ASK, NUMBA_DISABLE_JIT="1"))


@pytest.mark.long
def test_it_widens_bounds_by_hand_and_in_the_loop_alike(told: Any) -> None:
    usual, wider = told["joint"], told["wider"]
    assert wider["hand"] == wider["loop"]
    assert wider["step"] == pytest.approx(usual["step"] / WIDER)
    assert wider["hand"][-1] > usual["hand"][-1]
    assert wider["mixtures"][-1] > usual["mixtures"][-1]


@pytest.mark.long
def test_bounds_on_regret_and_certificates_are_of_it(told: Any) -> None:
    assert told["wider"]["bound"][0] == pytest.approx(WIDER * told["joint"]["bound"][0])
    assert told["wider"]["told"] == "wider"


def test_the_loop_written_for_a_gpu_calls_it(told: Any) -> None:
    calls = {name: told[name]["device"] for name in ("joint", "wider")}
    assert len(calls["wider"]) == 2
    assert [line.replace(f"radius({len(RADII)},", "radius(0,") for line in calls["wider"]] == calls["joint"]


@pytest.mark.long
def test_a_name_without_a_formula_leaves_nothing_but_the_safe_action(tmp_path: Path) -> None:
    told = json.loads(ran(with_radius(tmp_path, ""), "-c", ASK, NUMBA_DISABLE_JIT="1"))["wider"]
    assert told["step"] == 0.0
    assert told["why"]
    assert told["hand"] == told["loop"]
    assert told["bound"] == [math.inf]
    assert told["device"] == []  # left to the general loop, which is the CPU's


def test_a_number_without_a_formula_is_no_bound_at_all() -> None:
    assert radius(len(RADII), 1.0, 1.0, 1.0, 3.0, 0.5, 2, 1.0) == math.inf
    assert unit_radius(RATES + 1, 10.0, 3.0) == math.inf
    assert tuple(interval(RATES + 1, 10.0, 0.5, 0.1, 0.0, 3.0)) == (0.0, 1.0)
