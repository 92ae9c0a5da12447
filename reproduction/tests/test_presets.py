"""What each preset plays: the text as it is printed, the authors' code as it is public, our defaults."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.catalogue import CATALOGUE
from stagewise_reproduction.drawing import add_label, make_panels
from stagewise_reproduction.instances import (
    SIZES,
    at_zero,
    build_printed_world,
    compute_best_end,
    compute_optimum,
    shifted,
)
from stagewise_reproduction.paper.figure_1.plan import build_world
from stagewise_reproduction.paper.figure_3.plan import LEAST_THRESHOLDS, PUBLIC_ARMS, draw_public_instance
from stagewise_reproduction.published import build_published_play
from stagewise_reproduction.report import Section, describe_section

PAPER = [name for name, experiment in CATALOGUE.items() if len(experiment.presets) > 1]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the smallest size be two rounds: what is played is asked here, not what comes out."""
    monkeypatch.setitem(SIZES, "smoke", (2, 1))


def manifests(name: str, preset: str) -> list[dict[str, Any]]:
    """Return what the results of an experiment say that they are of."""
    return [cell.play(0).manifest for cell in CATALOGUE[name].cells(preset, "smoke")]


def rounded(rows: Any) -> set[tuple[float, ...]]:
    return {tuple(row) for row in np.round(np.array(rows, dtype=float), 12)}


@pytest.mark.parametrize("dimension", [3, 5, 10])
def test_the_text_s_rays_are_the_printed_ones(dimension: int) -> None:
    v = np.arange(dimension) / np.linalg.norm(np.arange(dimension))
    shifts, flipped = (rounded([np.roll(w, k) for k in range(dimension)]) for w in (v, v[::-1]))
    name = "figure-1" if dimension == 10 else f"figure-linear-d{dimension}"
    for preset, expected in (("text", shifts), ("authors", flipped), ("ours", flipped)):
        for manifest in manifests(name, preset):
            world = manifest["world"]
            assert rounded(world["features"]) == expected
            assert np.allclose([world["reward"], *world["cost"]], [v, v[::-1]])


def test_on_the_printed_rays_the_two_larger_thresholds_do_not_bind() -> None:
    assert compute_best_end(build_printed_world(10)) == (pytest.approx(1.0), pytest.approx(8 / 19))
    assert compute_best_end(shifted(10)) == (pytest.approx(49 / 57), pytest.approx(32 / 57))
    for threshold, value in [(0.8, 1.0), (0.5, 1.0), (0.2, 0.2 * 19 / 8)]:
        policy = sw.LCLUCB(safe_action=at_zero(10), threshold=threshold, noise=1.0)
        assert compute_optimum(policy, build_world("text", 10)) == pytest.approx(value, rel=1e-12)
    experiment = CATALOGUE["figure-1"]
    results = {cell.name: cell.play(0) for cell in experiment.cells("text", "smoke")[:1]}
    words = describe_section(Section(experiment, "text", "", gathered(results), []))
    assert "reward 1.000 and cost 0.421: τ = 0.5, 0.8 do not bind" in words
    assert "as printed" in words
    assert "flipped" not in words
    assert "reward 0.860 and cost 0.561: τ = 0.8 does not bind" in experiment.preset_words["authors"]


def gathered(results: dict[str, sw.Result]) -> dict[str, sw.Result]:
    """Let results know their cells, as those read from disk do."""
    for result in results.values():
        result.manifest["cell"] = {"policy": "LC-LUCB", "preset": "text", "tau": 0.2}
    return results


def test_figure_2_has_figure_1_s_noise_by_the_text_and_the_code_s_by_the_authors() -> None:
    for preset, noise in (("text", 1.0), ("authors", 0.1), ("ours", 0.1)):
        assert {tuple(manifest["world"]["noise"]) for manifest in manifests("figure-2", preset)} == {(noise, noise)}


@pytest.mark.parametrize("name", ["figure-1", "figure-2", "figure-3", "figure-4", "figure-4-appendix"])
def test_ours_is_our_default(name: str) -> None:
    for manifest in manifests(name, "ours"):
        options = manifest["policy"]["settings"]
        index = options["safe_action"]["settings"]
        given = {key: options[key] for key in ("threshold", "delta", "noise", "arms") if options.get(key) is not None}
        default = getattr(sw, manifest["policy"]["kind"])(safe_action=sw.SafeAction(**index), **given)
        for setting in set(options) - {"safe_action"}:
            assert getattr(default, setting) == options[setting], setting


def test_figure_3_of_the_public_code() -> None:
    cells = CATALOGUE["figure-3"].cells("authors", "smoke")
    assert [cell.settings["K"] for cell in cells] == [PUBLIC_ARMS] * 3 == [10] * 3
    for run in range(20):
        for least in (0.0, 0.2, 0.5):
            world, threshold = draw_public_instance(run, least)
            costs = world.table[1]
            assert costs.size == 10
            assert np.argmin(costs) == 0  # the safe one
            assert max(costs.min(), least) <= threshold <= max(costs.max(), least)
            assert world.description()["outcomes"] == "clipped-gaussian"
    assert len({draw_public_instance(run, 0.0)[1] for run in range(20)}) == 20
    for manifest, least in zip(manifests("figure-3", "authors"), LEAST_THRESHOLDS, strict=True):
        world, threshold = draw_public_instance(0, least)
        assert manifest["world"] == world.description()
        assert manifest["thresholds"] == {"cost": threshold}


def test_a_picture_is_labelled_with_its_preset() -> None:
    for name, preset in (("figure-1", "authors"), ("comparison", "ours")):
        label = Section(CATALOGUE[name], preset, "", {}, []).label
        figure = add_label(make_panels(1, 1)[0], label)
        assert figure.get_suptitle() == ("preset authors" if name == "figure-1" else "")


def test_a_safe_arm_that_costs_something_is_charged_for() -> None:
    """Of the arm that costs nearly the threshold, only as much is mixed in as the known cost leaves room for."""
    world = sw.ArmsWorld(reward=[0.1, 0.9], cost=[0.3, 1.0], outcomes="clipped-gaussian")
    policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.3), threshold=0.4)
    result = build_published_play("OPB", lambda _: (policy, world), 1000)(0)
    assert result.violations.sum() == 0
    assert result.max_cost.max() == pytest.approx(0.4)


def test_every_preset_says_what_it_plays() -> None:
    for name in PAPER:
        assert set(CATALOGUE[name].preset_words) == set(CATALOGUE[name].presets)


def test_no_experiment_repeats_another() -> None:
    """Two cells with the same settings under different names of experiments are one curve counted twice."""
    for preset in ("text", "authors", "ours"):
        plans = [
            tuple(sorted((key, str(value)) for key, value in cell.plan.items()))
            for name in PAPER
            for cell in CATALOGUE[name].cells(preset, "smoke")
        ]
        assert len(plans) == len(set(plans))
