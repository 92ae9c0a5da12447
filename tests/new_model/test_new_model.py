"""A new model is five files: a logistic one for rates, added to a copy of the package, with two policies that use it.

What it promises is proved in `logistic.py`, its kernels; `plays.py` is what the copy is asked.
"""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chance import allowed
from tests.grown import changed, copied, insert, ran
from tests.new_model.logistic import (
    LOGITS,
    MEANS,
    curvature,
    learn_logistic,
    logistic_size,
    look_logistic,
    radius_of,
    sigmoid,
    start_logistic,
)

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.layout import Part

HERE = Path(__file__).parent
MODEL = {
    "kernels/signals/logistic.py",
    "kernels/layout.py",
    "kernels/loop/round.py",
    "kernels/loop/memory.py",
    "models/logistic.py",
}
POLICY = {"policies/rare.py", "__init__.pyi"}


def add_model(package: Path) -> None:
    """Add the model: its kernels and its assumptions, its kind, and a branch wherever a round or a memory is made."""
    shutil.copyfile(HERE / "logistic.py", package / "kernels/signals/logistic.py")
    shutil.copyfile(HERE / "model.py", package / "models/logistic.py")
    layout, round_, memory = (package / f"kernels/{name}.py" for name in ("layout", "loop/round", "loop/memory"))
    signals = "from stagewise.kernels.signals.logistic import"
    insert(layout, "RIDGE, ARMS, SPACE", after="LOGISTIC = 100\n")
    insert(layout, "    if kind == ARMS:", before="    kind = RIDGE if kind == LOGISTIC else kind  # room enough\n")
    for path, names in ((round_, "learn_logistic, look_logistic"), (memory, "start_logistic")):
        insert(path, "from stagewise.kernels.signals.arms", before=f"{signals} {names}\n")
        insert(path, "from stagewise.kernels.layout", before="from stagewise.kernels.layout import LOGISTIC\n")
    insert(round_, "    rule: int = STAY", before="    logistic: int = 0\n")
    insert(round_, "    mixes, rays, apart =", after="    logistic = form.logistic\n")
    branch = "            if logistic and {}.kind == LOGISTIC:\n                {}\n"
    look = "look_logistic(part, features, safe, settings, memory, bounds, work)"
    insert(round_, "            dispute = found", before=branch.format("part", look))
    learn = "learn_logistic(part, action, seen, settings, memory, work)"
    insert(round_, "            seen = values[", after=branch.format("part", learn))
    insert(memory, "    ridge, arms, space", after="    logistic = models[-1]\n")
    text = memory.read_text("utf-8").replace("= models\n", "= models[:-1]\n")
    memory.write_text(text, encoding="utf-8")
    start = "start_logistic(part, settings, memory)"
    insert(memory, "            if arms and part.kind == ARMS:", before=branch.format("part", start))
    kept = "copy(memory, old.memory, changed, new.memory, (new.size + 1) * new.size + 2)"
    insert(memory, "            if arms and new.kind == ARMS:", before=branch.format("new", kept))


def add_policies(package: Path) -> None:
    """Add two policies that pair it with the rules that there are."""
    shutil.copyfile(HERE / "policy.py", package / "policies/rare.py")
    exports = "".join(f"from stagewise.policies.rare import {name} as {name}\n" for name in ("RareLCLUCB", "RareOPLB"))
    insert(package / "__init__.pyi", "from stagewise.policies.safe_lts", before=exports)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package with the model and the policies in it."""
    package = copied(tmp_path_factory.mktemp("grown"))
    add_model(package)
    add_policies(package)
    return package


@pytest.fixture(scope="module")
def plain(package: Path) -> Any:
    """Return what the copy does where nothing is compiled."""
    return json.loads(ran(package, str(HERE / "plays.py"), "plain", NUMBA_DISABLE_JIT="1"))


@pytest.fixture(scope="module")
def compiled(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what the copy does compiled."""
    cache = str(tmp_path_factory.mktemp("cache"))
    return json.loads(ran(package, str(HERE / "plays.py"), "compiled", NUMBA_DISABLE_JIT="0", STAGEWISE_CACHE=cache))


def test_the_model_is_five_files_and_policies_of_it_are_two(tmp_path: Path, package: Path) -> None:
    alone = copied(tmp_path)
    add_model(alone)
    assert changed(alone) == MODEL
    assert changed(package) == MODEL | POLICY


@pytest.mark.long
def test_both_rules_play_it_unchanged_by_hand_and_in_the_loop(plain: Any) -> None:
    told = plain["alike"]
    assert told["known"]
    assert told["alike"]
    assert told["went on"]
    assert told["mixed"] > 0.0
    assert told["regret"][-1] > 0.0


@pytest.mark.long
def test_on_rays_the_rate_of_every_point_keeps_its_limit(plain: Any) -> None:
    told = plain["rays"]
    assert 0.0 < told["first"] < told["longest"]
    assert told["broken"] == told["missed"] == 0


def test_certificates_and_contradictions_know_it(plain: Any) -> None:
    assert plain["vouched"]["stands"]
    assert "puts a mean 'cost' above 0.16, the declared bound" in plain["vouched"]["disputed"]


def test_the_watch_sees_its_rates_move_and_only_where_they_do(plain: Any) -> None:
    moved, steady = plain["watched"]["moved"], plain["watched"]["steady"]
    assert moved["verdict"] == "contradicted"
    assert "no one parameter explains the first" in moved["sentence"]
    assert moved["fallback"].startswith("the mean of 'cost' moved: ")
    assert steady["verdict"] == "fine"
    assert steady["fallback"] is None
    assert "noise of cost" not in moved["names"]  # none was declared


def test_it_refuses_what_it_cannot_be(plain: Any) -> None:
    below, origin, outcome = plain["refused"]
    assert "count what does not happen" in below
    assert "add a constant feature" in origin
    assert "outside [0, 1]" in outcome


@pytest.mark.compiled
def test_compiled_it_is_the_same_and_its_bounds_cover_the_rates(compiled: Any) -> None:
    assert compiled["alike"]["alike"]
    told = compiled["covered"]
    assert told["missed"] <= allowed(400, 0.05)
    assert told["broken"] <= allowed(400, 0.05)
    assert told["reward"] == sorted(told["reward"])  # it learns how far it may go
    assert compiled["mistold"]["missed"] > allowed(400, 0.05)  # of parameters declared too short


@settings(deadline=None)
@given(st.floats(-30.0, 30.0), st.floats(-30.0, 30.0), st.floats(0.0, 1.0))
def test_the_loss_lies_above_its_parabola(logit: float, true: float, seen: float) -> None:
    loss = [math.log1p(math.exp(-abs(z))) + max(z, 0.0) - seen * z for z in (logit, true)]
    away, kappa = true - logit, curvature(logit, abs(true))
    below = loss[0] + (sigmoid(logit) - seen) * away + 0.5 * kappa * away * away
    assert loss[1] >= below - 1e-9 * (1.0 + abs(below))


def begun(d: int, link: int, anchored: int) -> tuple[Part, Any, Any]:
    """Return a part of a memory, its settings λ, S, log 1/δ and known, and the memory."""
    fields = dict.fromkeys(Part._fields, 0) | {"signals": 1, "size": d, "radius": link, "anchored": anchored}
    part, memory = Part(**fields), np.zeros(logistic_size(d))
    settings = np.array([0.5, 3.0, math.log(20.0), 0.125])
    start_logistic(part, settings, memory)
    return part, settings, memory


@pytest.mark.parametrize("link", [LOGITS, MEANS])
def test_it_is_the_weighted_ridge_regression_of_the_textbook(link: int) -> None:
    rng, d = np.random.default_rng(link), 4
    part, settings, memory = begun(d, link, link)
    ridge, bound, confidence, known = settings
    gram, sums, total, spent = ridge * np.eye(d), np.zeros(d), 0.0, 0.0
    for x in rng.normal(size=(60, d)):
        fit, reach = np.linalg.solve(gram, sums), bound * float(np.linalg.norm(x))
        z, y = float(np.clip(x @ fit, -reach, reach)), float(rng.uniform() < 0.3)
        kappa, slope = curvature(z, reach), sigmoid(z) - y
        learn_logistic(part, x, np.array([y]), settings, memory, np.empty(2 * d))
        w = z - slope / kappa
        gram, sums, total = gram + kappa * np.outer(x, x), sums + kappa * w * x, total + kappa * w * w
        spent += slope * slope / kappa
    fit = np.linalg.solve(gram, sums)
    least = total - sums @ fit  # of the weighted squares, at the fit
    beta = math.sqrt(ridge * bound**2 + 2.0 * confidence + spent - least)
    assert radius_of(part, settings, memory) == pytest.approx(beta, rel=1e-8)
    features, safe, bounds = rng.normal(size=(5, d)), rng.normal(size=d), np.zeros((1, 3, 6))
    look_logistic(part, features, safe, settings, memory, bounds, np.empty(d))
    for i, x in enumerate([*features, safe]):
        half, reach = beta * math.sqrt(x @ np.linalg.solve(gram, x)), bound * float(np.linalg.norm(x))
        ends = np.clip([x @ fit - half, x @ fit + half], -reach, reach)
        low, high = [sigmoid(end) for end in ends] if link == MEANS else ends
        if i == 5 and link == MEANS:
            low = high = known
        assert bounds[0, CENTRE, i] == pytest.approx(0.5 * (low + high), rel=1e-7, abs=1e-9)
        assert bounds[0, HALF, i] == pytest.approx(0.5 * (high - low), rel=1e-7, abs=1e-9)
