"""Adding a model changes five files: a logistic model of rates, added to a copy of the package, with two policies.

`logistic.py` has its kernels and the proof of its confidence set; `plays.py` is the script that the copy runs.
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
    compute_logistic_bounds,
    compute_logistic_radius,
    curvature,
    learn_logistic,
    logistic_size,
    sigmoid,
    start_logistic,
)

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.layout import ModelBlock
from stagewise.problem.errors import ErrorCode
from stagewise.records.reason import Contradiction, Reason

HERE = Path(__file__).parent
MODEL = {
    "kernels/models/logistic.py",
    "kernels/layout.py",
    "kernels/loop/round.py",
    "kernels/loop/memory.py",
    "models/logistic.py",
}
POLICY = {"policies/rare.py", "__init__.pyi"}


def add_model(package: Path) -> None:
    """Add the model: its kernels, its assumptions, its kind, and a branch in each round and memory kernel."""
    shutil.copyfile(HERE / "logistic.py", package / "kernels/models/logistic.py")
    shutil.copyfile(HERE / "model.py", package / "models/logistic.py")
    layout, round_, memory = (package / f"kernels/{name}.py" for name in ("layout", "loop/round", "loop/memory"))
    imports = "from stagewise.kernels.models.logistic import"
    insert(layout, "RIDGE, ARMS, KERNEL_RIDGE", after="LOGISTIC = 100\n")
    insert(layout, "    if kind == ARMS:", before="    kind = RIDGE if kind == LOGISTIC else kind  # room enough\n")
    for path, names in ((round_, "compute_logistic_bounds, learn_logistic"), (memory, "start_logistic")):
        insert(path, "from stagewise.kernels.models.arm_means", before=f"{imports} {names}\n")
        insert(path, "from stagewise.kernels.layout", before="from stagewise.kernels.layout import LOGISTIC\n")
    insert(round_, "    rule: int = ALWAYS_SAFE", before="    logistic: int = 0\n")
    insert(round_, "    mixes, rays, separate_models =", after="    logistic = round_spec.logistic\n")
    branch = "            if logistic and {}.kind == LOGISTIC:\n                {}\n"
    bounds_call = "compute_logistic_bounds(block, features, safe, settings, memory, bounds, work)"
    insert(round_, "            contradiction = found", before=branch.format("block", bounds_call))
    learn = "learn_logistic(block, action, observed, settings, memory, work)"
    insert(round_, "            observed = values[", after=branch.format("block", learn))
    insert(memory, "    ridge, arms, kernel_ridge", after="    logistic = models[-1]\n")
    text = memory.read_text("utf-8").replace("= models\n", "= models[:-1]\n")
    memory.write_text(text, encoding="utf-8")
    start = "start_logistic(block, settings, memory)"
    insert(memory, "            if arms and block.kind == ARMS:", before=branch.format("block", start))
    copy = "copy_values(memory, old.memory, changed, new.memory, (new.size + 1) * new.size + 2)"
    insert(memory, "            if arms and new.kind == ARMS:", before=branch.format("new", copy))


def add_policies(package: Path) -> None:
    """Add two policies that combine it with the existing rules."""
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
def interpreted(package: Path) -> Any:
    """Return the results of the copy without compilation."""
    return json.loads(ran(package, str(HERE / "plays.py"), "interpreted", NUMBA_DISABLE_JIT="1"))


@pytest.fixture(scope="module")
def compiled(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the results of the compiled copy."""
    cache = str(tmp_path_factory.mktemp("cache"))
    return json.loads(ran(package, str(HERE / "plays.py"), "compiled", NUMBA_DISABLE_JIT="0", STAGEWISE_CACHE=cache))


def test_the_model_is_five_files_and_policies_of_it_are_two(tmp_path: Path, package: Path) -> None:
    model_only = copied(tmp_path)
    add_model(model_only)
    assert changed(model_only) == MODEL
    assert changed(package) == MODEL | POLICY


@pytest.mark.long
def test_both_rules_play_it_unchanged_by_hand_and_in_the_loop(interpreted: Any) -> None:
    result = interpreted["alike"]
    assert result["can_play"]
    assert result["alike"]
    assert result["resumed"]
    assert result["mixed"] > 0.0
    assert result["regret"][-1] > 0.0


@pytest.mark.long
def test_on_rays_the_rate_of_every_point_keeps_its_limit(interpreted: Any) -> None:
    result = interpreted["rays"]
    assert 0.0 < result["first"] < result["longest"]
    assert result["violations"] == result["missed"] == 0


def test_certificates_and_contradictions_know_it(interpreted: Any) -> None:
    assert interpreted["certificate"]["stands"]
    assert interpreted["certificate"]["reason"] == Reason.ASSUMPTION_CONTRADICTED
    assert interpreted["certificate"]["details"]["found"] == Contradiction.COST_BOUND


def test_the_watch_sees_its_rates_move_and_only_where_they_do(interpreted: Any) -> None:
    moved, steady = interpreted["watched"]["moved"], interpreted["watched"]["steady"]
    assert moved["verdict"] == "contradicted"
    assert moved["reason"] == Reason.ASSUMPTION_CONTRADICTED
    assert moved["details"]["found"] == Contradiction.DRIFT
    assert steady["verdict"] == "fine"
    assert steady["reason"] is None
    assert "noise of cost" not in moved["names"]  # none was declared


def test_it_refuses_what_it_cannot_be(interpreted: Any) -> None:
    assert interpreted["refused"] == [ErrorCode.UNSUPPORTED, ErrorCode.SAFE_ACTION_INVALID, ErrorCode.OUT_OF_RANGE]


@pytest.mark.compiled
def test_compiled_it_is_the_same_and_its_bounds_cover_the_rates(compiled: Any) -> None:
    assert compiled["alike"]["alike"]
    result = compiled["coverage"]
    assert result["missed"] <= allowed(400, 0.05)
    assert result["violations"] <= allowed(400, 0.05)
    assert result["reward"] == sorted(result["reward"])  # it learns how far it may go
    assert compiled["wrong_bound"]["missed"] > allowed(400, 0.05)  # norm_bound is too small


@settings(deadline=None)
@given(st.floats(-30.0, 30.0), st.floats(-30.0, 30.0), st.floats(0.0, 1.0))
def test_the_loss_lies_above_its_parabola(logit: float, true: float, value: float) -> None:
    loss = [math.log1p(math.exp(-abs(z))) + max(z, 0.0) - value * z for z in (logit, true)]
    away, kappa = true - logit, curvature(logit, abs(true))
    below = loss[0] + (sigmoid(logit) - value) * away + 0.5 * kappa * away * away
    assert loss[1] >= below - 1e-9 * (1.0 + abs(below))


def start_block(d: int, link: int, anchored: int) -> tuple[ModelBlock, Any, Any]:
    """Return a block, its settings λ, S, log 1/δ and known, and its memory."""
    fields = dict.fromkeys(ModelBlock._fields, 0) | {"signals": 1, "size": d, "radius": link, "anchored": anchored}
    block, memory = ModelBlock(**fields), np.zeros(logistic_size(d))
    settings = np.array([0.5, 3.0, math.log(20.0), 0.125])
    start_logistic(block, settings, memory)
    return block, settings, memory


@pytest.mark.parametrize("link", [LOGITS, MEANS])
def test_it_is_the_weighted_ridge_regression_of_the_textbook(link: int) -> None:
    rng, d = np.random.default_rng(link), 4
    block, settings, memory = start_block(d, link, link)
    ridge, bound, confidence, known = settings
    gram, sums, total, spent = ridge * np.eye(d), np.zeros(d), 0.0, 0.0
    for x in rng.normal(size=(60, d)):
        fit, reach = np.linalg.solve(gram, sums), bound * float(np.linalg.norm(x))
        z, y = float(np.clip(x @ fit, -reach, reach)), float(rng.uniform() < 0.3)
        kappa, slope = curvature(z, reach), sigmoid(z) - y
        learn_logistic(block, x, np.array([y]), settings, memory, np.empty(2 * d))
        w = z - slope / kappa
        gram, sums, total = gram + kappa * np.outer(x, x), sums + kappa * w * x, total + kappa * w * w
        spent += slope * slope / kappa
    fit = np.linalg.solve(gram, sums)
    least = total - sums @ fit  # of the weighted squares, at the fit
    beta = math.sqrt(ridge * bound**2 + 2.0 * confidence + spent - least)
    assert compute_logistic_radius(block, settings, memory) == pytest.approx(beta, rel=1e-8)
    features, safe, bounds = rng.normal(size=(5, d)), rng.normal(size=d), np.zeros((1, 3, 6))
    compute_logistic_bounds(block, features, safe, settings, memory, bounds, np.empty(d))
    for i, x in enumerate([*features, safe]):
        half, reach = beta * math.sqrt(x @ np.linalg.solve(gram, x)), bound * float(np.linalg.norm(x))
        ends = np.clip([x @ fit - half, x @ fit + half], -reach, reach)
        low, high = [sigmoid(end) for end in ends] if link == MEANS else ends
        if i == 5 and link == MEANS:
            low = high = known
        assert bounds[0, CENTRE, i] == pytest.approx(0.5 * (low + high), rel=1e-7, abs=1e-9)
        assert bounds[0, HALF, i] == pytest.approx(0.5 * (high - low), rel=1e-7, abs=1e-9)
