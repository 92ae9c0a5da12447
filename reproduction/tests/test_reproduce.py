"""The reproduction: every name, cached and continued, its claims and its files."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.beyond.lower_bound.plan import build_instance, compute_bound
from stagewise_reproduction.catalogue import CATALOGUE
from stagewise_reproduction.claim import (
    FAILS,
    HOLDS,
    REMARK,
    Claim,
    check_clearly_smaller,
    check_safety,
    compute_exponent,
)
from stagewise_reproduction.errata import load_errata
from stagewise_reproduction.instances import compute_optimum, shifted
from stagewise_reproduction.paper.figure_1.claims import compute_theorem_bound
from stagewise_reproduction.run import find_failed, reproduce

NAMES = [
    *("figure-1", "figure-linear-d3", "figure-linear-d5", "figure-2", "figure-3", "figure-4", "figure-4-appendix"),
    *("as-printed", "comparison", "lower-bound", "lower-bound-linear", "multi-constraint", "price-of-safety"),
    *("rivals", "safe-lucb", "unknown-baseline"),
]


def test_every_experiment_has_its_name() -> None:
    assert list(CATALOGUE) == NAMES


def test_every_cell_is_a_result_that_says_what_it_is(reproduction: tuple[Path, list[Claim]]) -> None:
    out, _ = reproduction
    cells = [path.parent for path in out.glob("results/*/*/manifest.json")]
    assert {cell.parent.name for cell in cells} == set(NAMES)
    for cell in cells:
        result = sw.Result.load(cell)
        about = set(result.manifest["cell"])
        assert {"policy", "preset"} <= about
        assert about & {"tau", "family"}
        assert result.manifest["plan"]["cell"] == cell.name
        assert len(result.runs) == 2
        assert result.rounds[-1] == result.manifest["plan"]["rounds"] <= 1000


def test_claims_are_listed_with_their_verdicts(reproduction: tuple[Path, list[Claim]]) -> None:
    out, claims = reproduction
    listed = json.loads((out / "claims.json").read_text())
    assert len(listed) == len(claims) > 100
    for entry in listed:
        assert set(entry) >= {"experiment", "name", "value", "criterion", "verdict", "must_hold"}
        assert entry["verdict"] in (HOLDS, REMARK, FAILS)
    assert {entry["experiment"] for entry in listed} == set(NAMES)
    assert find_failed(claims) == []
    assert sum(entry["must_hold"] for entry in listed) > 20


def test_the_report_and_its_figures_are_there(reproduction: tuple[Path, list[Claim]]) -> None:
    out, claims = reproduction
    page, text = (out / "report.html").read_text(), (out / "report.md").read_text()
    for name in NAMES:
        assert list((out / "figures").glob(f"{name}*.png"))
        assert list((out / "figures").glob(f"{name}*.svg"))
    assert page.count("<img ") == len(list((out / "figures").glob("*.png"))) == text.count("![")
    assert "http://" not in page
    assert "https://" not in page
    assert page.index("<h2 id='figure-1-text'") < page.index("<h2 id=claims>") < page.index("<h2 id=errata>")
    assert text.index("![") < text.index("\n| ")
    assert len(list((out / "figures" / "phone").glob("*.png"))) == len(list((out / "figures").glob("*.png")))
    assert len(load_errata()) >= 60
    assert all(claim.name in text for claim in claims)


@pytest.mark.slow
@pytest.mark.compiled
def test_every_preset_is_played_and_every_figure_rendered(tmp_path: Path) -> None:
    claims = reproduce(list(CATALOGUE), ["text", "authors", "ours"], "smoke", tmp_path, 1)
    assert find_failed(claims) == []
    pictures = list((tmp_path / "figures").glob("*.png"))
    assert len(pictures) == len(list((tmp_path / "figures" / "phone").glob("*.png"))) > 25
    assert all(path.stat().st_size > 5000 for path in pictures)


def test_what_is_kept_is_not_played_again(reproduction: tuple[Path, list[Claim]], tmp_path: Path) -> None:
    out = tmp_path / "copy"
    shutil.copytree(reproduction[0] / "results" / "figure-4", out / "results" / "figure-4")
    parts = sorted(out.glob("results/figure-4/text-*/parts/*/manifest.json"))
    before = [os.stat(part).st_mtime_ns for part in parts]
    parts[0].unlink()
    reproduce(["figure-4"], ["text"], "smoke", out, 1)
    assert [os.stat(part).st_mtime_ns for part in parts][1:] == before[1:]
    assert parts[0].exists()


# The settings


def test_the_paper_s_rays_have_the_paper_s_optimum() -> None:
    world = shifted(10)
    for threshold, value in [(0.8, 49 / 57), (0.5, 0.5 / (32 / 57) * 49 / 57), (0.2, 0.2 / (32 / 57) * 49 / 57)]:
        policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(10)), threshold=threshold, noise=1.0)
        assert compute_optimum(policy, world) == pytest.approx(value, rel=1e-12)


def test_the_lower_bound_s_instances_are_those_of_the_corrected_proof() -> None:
    step, base = 0.5 / 7, 3 / 7
    first, second = build_instance(0.1, "ν"), build_instance(0.1, "ν'")
    safe = sw.SafeAction(arm=0, reward=0.5, cost=0.2)
    policy = sw.OPB(arms=4, safe_action=safe, threshold=0.3, noise=1.0)
    assert compute_optimum(policy, first) == pytest.approx(base + 10 / 3 * step)
    assert compute_optimum(policy, second) == pytest.approx(base + 16 / 3 * step)
    assert compute_bound(0.05) == pytest.approx(0.5 / (21 * 0.0025))


def test_the_theorem_s_bound() -> None:
    scale, radius = 1 + 2 / 0.5, np.sqrt(10 * np.log(1e5 / 0.005)) + 1
    expected = (scale + 1) * radius * np.sqrt(2 * 1e5 * 10 * np.log(1 + 1e5))
    assert compute_theorem_bound(100_000, 10, 0.5) == pytest.approx(expected)


def finals(*regrets: float) -> sw.Result:
    """Return runs with these final regrets."""
    column, runs = np.array(regrets)[:, None], np.arange(len(regrets))
    cost = np.zeros((len(regrets), 1, 1))
    return sw.Result(np.array([10]), column, column, cost, cost[:, 0], runs * 0, column, runs, {})


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ((1.0, 2.0, 3.0), (2.0, 3.1, 4.0), HOLDS),  # in every run by about 1
        ((1.0, 2.0, 3.0), (9.0, 1.0, 2.0), REMARK),  # by 2 on average, and in one run of three
        ((1.0, 2.0, 3.0), (1.0, 2.0, 2.0), FAILS),
    ],
)
def test_less_regret_is_claimed_of_pairs_of_runs(one: tuple[float], other: tuple[float], verdict: str) -> None:
    claim = check_clearly_smaller("less", finals(*one), finals(*other), "disclosed")
    assert claim.verdict == verdict
    assert ("disclosed" in claim.remark) == (verdict == FAILS)


def curve(regret: np.ndarray, violations: int) -> sw.Result:
    rounds = np.arange(1, regret.size + 1) * 10
    flat = np.zeros((1, regret.size))
    cost = np.zeros((1, regret.size, 1))
    counts = np.array([violations])
    return sw.Result(rounds, regret[None], flat, cost, np.zeros((1, 1)), counts, flat, np.array([0]), {})


def test_growth_and_safety_are_read_off_correctly() -> None:
    rounds = np.arange(1, 101) * 10.0
    assert compute_exponent(curve(3.0 * rounds**0.5, 0)) == pytest.approx(0.5)
    assert compute_exponent(curve(2.0 * rounds, 0)) == pytest.approx(1.0)
    assert check_safety({"a": curve(rounds, 0)}).verdict == HOLDS
