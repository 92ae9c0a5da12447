"""Certificates: what they support, what they refute, and that they can be played again to the bit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.simulation import certify as certify_module
from stagewise.simulation.certify import batch_size, findings_of

TARGETS = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
SAFE = sw.SafeAction(features=[0.0, 0.0])
FIXED = sw.LinearWorld(theta=[0.6, 0.8], mu=[0.8, 0.6], actions=sw.Rays(TARGETS), noise=0.5)
POLICY = sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.5)
ROUNDS = 200


def certified(policy: Any = POLICY, world: Any = FIXED, **settings: Any) -> sw.Certificate:
    return sw.certify(policy, world, **({"rounds": ROUNDS, "runs": 2000, "progress": False} | settings))


def without_times(certificate: sw.Certificate) -> dict[str, Any]:
    return {name: value for name, value in certificate.content.items() if name != "made"}


def test_an_honest_policy_is_supported_before_all_runs_are_played() -> None:
    certificate = certified(runs=20_000)
    found = certificate.content["violations"]
    assert certificate.holds
    assert found["runs"] < 20_000
    assert found["anytime"][1] <= 0.05
    assert found["exact"] is None
    assert len(certificate.content["coverage"]) == 2
    assert certificate.content["optimism"] is not None


def test_the_runs_are_those_that_simulate_plays() -> None:
    certificate = certified(runs=60, early=False)
    result = sw.simulate(POLICY, FIXED, rounds=ROUNDS, runs=60, record=20, audit=True)
    assert result.audit is not None
    found = certificate.content
    assert found["violations"]["happened"] == (result.violations > 0).sum()
    assert [one["happened"] for one in found["coverage"]] == (result.audit["missed"] > 0).sum(axis=0).tolist()
    assert found["regret"]["quantiles"]["0.5"] == np.median(result.regret, axis=0).tolist()
    assert found["margins"]["cost"]["quantiles"]["0"] == pytest.approx(float((0.3 - result.max_cost).min()), abs=1e-15)
    assert found["violations"]["exact"] is not None


@pytest.mark.parametrize(
    ("policy", "world"),
    [
        (sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.05, parameter_bound=0.1, cost_bound=None), FIXED),
        (
            sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.5, cost_bound=None),
            sw.LinearWorld(theta=[0.6, 0.8], mu=[0.8, 0.6], actions=sw.Rays(TARGETS), noise=10.0),
        ),
        (sw.LinUCB(safe_action=SAFE, threshold=0.3, noise=0.5), FIXED),
        (sw.DOSLB(safe_action=SAFE, threshold=0.3, noise=0.5), FIXED),
    ],
    ids=["radius ten times too small", "noisier world", "LinUCB", "DOSLB"],
)
def test_what_must_fail_is_refuted(policy: Any, world: Any) -> None:
    certificate = certified(policy, world)
    assert certificate.verdict == "refuted"
    assert not certificate.holds
    assert certificate.content["violations"]["anytime"][0] > 0.05


def test_broken_grounds_are_told_even_where_no_limit_breaks() -> None:
    policy = sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=[0.01, 0.5], parameter_bound=[0.1, 1.0])
    certificate = certified(policy, early=False, runs=400)
    assert certificate.verdict == "supported"
    assert certificate.content["grounds"] == "refuted"
    assert not certificate.holds
    broken = [one["assumption"] for one in certificate.content["assumptions"] if not one["kept"]]
    assert any("noise" in words for words in broken)
    assert any("long" in words for words in broken)


def test_too_few_runs_leave_it_undecided_and_say_how_many_would_do() -> None:
    certificate = certified(runs=30)
    assert certificate.verdict == "undecided"
    assert certificate.content["violations"]["needed"] > 30


def drawn(run: int) -> tuple[Any, Any]:
    """Return a policy and a world of its own for every run."""
    rng = np.random.default_rng(run)
    theta, mu = (row / np.linalg.norm(row) for row in rng.normal(size=(2, 2)))
    return POLICY, sw.LinearWorld(theta=theta, mu=mu, actions=sw.Rays(TARGETS), noise=0.5)


FAMILIES = {
    "fixed": (POLICY, FIXED),
    "function": (None, drawn),
    "function that cannot travel": (POLICY, lambda run: drawn(run)[1]),
    "sphere": (POLICY, sw.SphereFamily(FIXED, seed=4)),
    "arms": (
        sw.OPB(arms=3, safe_action=sw.SafeAction(arm=1, reward=0.3, cost=0.1), threshold=0.4, radius="kl"),
        sw.ArmsFamily(sw.ArmsWorld(reward=[0.5, 0.3, 0.9], cost=[0.5, 0.1, 0.8]), safe=1, seed=4, spread=0.5),
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_certificate_does_not_depend_on_the_workers(name: str) -> None:
    alone = certified(*FAMILIES[name], runs=60)
    shared = certified(*FAMILIES[name], runs=60, executor="processes:2")
    assert without_times(alone) == without_times(shared)


def test_drawn_policies_and_worlds_are_as_good_as_drawn_worlds() -> None:
    function, pairs = certified(POLICY, lambda run: drawn(run)[1], runs=60), certified(None, drawn, runs=60)
    assert function.content["batches"] == pairs.content["batches"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_certificate_can_be_played_again(name: str, tmp_path: Path) -> None:
    policy, world = FAMILIES[name]
    certified(policy, world, runs=100, out=tmp_path)
    given = {"policy": policy, "world": world} if "function" in name else {}
    found = sw.verify(tmp_path / "certificate.json", part=0.2, **given)
    assert found.stands
    assert found.equal == found.batches > 1
    if given:
        with pytest.raises(sw.InvalidProblem, match="drawn by"):
            sw.verify(tmp_path)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda c: c["batches"][0].update(digest="0" * 64), "give other numbers"),
        (lambda c: c["plan"].update(seed=1), "give other numbers"),
        (lambda c: c["policy"]["settings"].update(noise=0.4), "give other numbers"),
        (lambda c: c.update(verdict="refuted"), "its verdict"),
        (lambda c: c["violations"].update(happened=99), "broken limits"),
        (lambda c: c["coverage"][0].update(happened=1000), "intervals"),
        (lambda c: c["batches"].pop(0), "not those of its plan"),
        (lambda c: c["thresholds"][0].update(value=0.9), "the limits it names"),
        (lambda c: c["claim"].update(rounds=10**9), "other rounds"),
        (lambda c: c["assumptions"][0].update(kept=False), "was assumed"),
        (lambda c: c["margins"]["cost"]["quantiles"].update({"0": 0.2}), "left to the limits"),
    ],
)
def test_a_certificate_that_was_tampered_with_does_not_stand(change: Any, fault: str, tmp_path: Path) -> None:
    certified(runs=100, out=tmp_path)
    path = tmp_path / "certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    found = sw.verify(path, part=1.0)
    assert not found.stands
    assert any(fault in words for words in found.faults)


def test_another_version_is_compared_within_a_tolerance(tmp_path: Path) -> None:
    certified(runs=100, out=tmp_path)
    path = tmp_path / "certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["made"]["versions"]["numpy"] = "1.0"
    for batch in content["batches"]:
        batch["digest"] = "0" * 64
        batch["regret"] *= 1.0 + 1e-9
    path.write_text(json.dumps(content), encoding="utf-8")
    assert sw.verify(path, part=1.0).stands
    content["batches"][0]["regret"] *= 1.01
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not sw.verify(path, part=1.0).stands


def test_by_hand_nothing_is_said_of_intervals() -> None:
    certificate = certified(runs=20, rounds=30, backend="python")
    assert certificate.content["coverage"] == []


def test_a_family_of_worlds_is_a_function_of_seed_and_run() -> None:
    family = sw.SphereFamily(FIXED, seed=4)
    assert np.array_equal(family(7).parameters, sw.SphereFamily(FIXED, seed=4)(7).parameters)
    assert not np.array_equal(family(7).parameters, family(8).parameters)
    assert not np.array_equal(family(7).parameters, sw.SphereFamily(FIXED, seed=5)(7).parameters)


@pytest.mark.parametrize("spread", [-0.1, 1.5, float("nan")])
def test_a_spread_keeps_means_from_being_negative(spread: float) -> None:
    with pytest.raises(sw.InvalidProblem, match="spread"):
        sw.ArmsFamily(sw.ArmsWorld(reward=[0.5, 0.3], cost=[0.5, 0.1]), spread=spread)


def test_spread_means_stay_around_those_of_the_world_and_below_one() -> None:
    world = sw.ArmsWorld(reward=[0.5, 0.3, 0.9], cost=[0.5, 0.1, 0.02])
    family = sw.ArmsFamily(world, safe=1, spread=0.5)
    tables = np.array([family(run).table for run in range(200)])
    assert np.all(tables >= 0.5 * world.table - 1e-15)
    assert np.all(tables <= np.minimum(1.5 * world.table, 1.0) + 1e-15)
    assert np.array_equal(tables[:, :, 1], np.broadcast_to(world.table[:, 1], (200, 2)))
    assert np.all(tables[:, :, [0, 2]].std(axis=0) > 0.0)


def test_batches_are_neither_too_many_nor_too_long() -> None:
    assert batch_size(10_000, 100_000, "cpu") == 1000
    assert batch_size(1_000_000, 100_000, "cpu") == 20
    assert batch_size(10, 3, "cpu") == 1


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"rounds": 0}, "rounds is 0"),
        ({"runs": -1}, "runs is -1"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"delta": float("nan")}, "delta is nan|delta"),
        ({"policy": None}, "there is no policy"),
        ({"policy": sw.LinUCB(noise=0.1)}, "nothing to certify"),
        ({"executor": "cuda"}, "cuda"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(sw.InvalidProblem, match=part):
        certified(**settings)


def test_a_family_has_one_number_of_thresholds() -> None:
    def uneven(run: int) -> tuple[Any, Any]:
        if run < 3:
            return POLICY, FIXED
        world = sw.LinearWorld(theta=[0.6, 0.8], mu=np.eye(2), actions=sw.Rays(TARGETS), noise=0.5)
        return sw.LCLUCB(safe_action=SAFE, threshold=[0.3, 0.4], noise=0.5), world

    for runs in (10, 200):  # within a batch, and between two
        with pytest.raises(sw.InvalidProblem, match="thresholds"):
            certified(None, uneven, runs=runs)


def test_limits_from_below_have_margins_too() -> None:
    world = sw.LinearWorld(theta=[0.6, 0.8], mu=[[0.8, 0.6], [0.6, 0.0]], actions=sw.Rays(TARGETS), noise=0.5)
    limits = {"wear": 0.3, "yield": sw.AtLeast(-0.2)}
    policy = sw.LCLUCB(safe_action=SAFE, threshold=limits, noise=0.5)
    certificate = certified(policy, world, runs=50)
    result = sw.simulate(policy, world, rounds=ROUNDS, runs=50)
    least = certificate.content["margins"]["yield"]["quantiles"]["0"]
    assert least == pytest.approx(float((result.max_cost[:, 1] + 0.2).min()))
    assert [one["side"] for one in certificate.content["thresholds"]] == ["at most", "at least"]


class PowerCut(Exception):
    """Ends a certificate in the middle."""


def test_a_certificate_that_was_cut_short_goes_on_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[int] = []

    def counting(family: Any, rounds: int, seed: int, backend: str, first: int, count: int) -> Any:
        if len(played) == 3:
            raise PowerCut
        played.append(first)
        return findings_of(family, rounds, seed, backend, first, count)

    whole = certified(runs=100, early=False)
    monkeypatch.setattr(certify_module, "findings_of", counting)
    with pytest.raises(PowerCut):
        certified(runs=100, early=False, out=tmp_path)
    assert not (tmp_path / "certificate.json").exists()
    before = list(played)
    monkeypatch.setattr(certify_module, "findings_of", findings_of)
    with pytest.raises(sw.InvalidFile, match="another certificate, whose seed differs"):
        certified(runs=100, early=False, out=tmp_path, seed=1)
    kept = sorted((tmp_path / "batches").glob("from-*.npz"))
    assert len(kept) == 3
    played.clear()
    played.extend([-1] * 4)  # no more power cuts
    monkeypatch.setattr(certify_module, "findings_of", counting)
    again = certified(runs=100, early=False, out=tmp_path)
    assert not set(before) & set(played)
    assert without_times(again) == without_times(whole)
    assert not (tmp_path / "batches").exists()


def test_a_batch_that_was_tampered_with_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*task: Any) -> Any:
        if task[-2] > 0:
            raise PowerCut
        return findings_of(*task)

    monkeypatch.setattr(certify_module, "findings_of", cut)
    with pytest.raises(PowerCut):
        certified(runs=100, early=False, out=tmp_path)
    (batch,) = (tmp_path / "batches").glob("from-*.npz")
    batch.write_bytes(b"nothing")
    with pytest.raises(sw.InvalidFile, match="is not a batch of runs; delete it"):
        certified(runs=100, early=False, out=tmp_path)


def test_nothing_is_kept_of_worlds_that_no_file_can_tell_apart(tmp_path: Path) -> None:
    certified(world=lambda run: FIXED, runs=40, out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["certificate.html", "certificate.json"]


def test_a_place_that_cannot_hold_it_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    monkeypatch.setattr("stagewise.simulation.certify.gathered", lambda *_: pytest.fail("it was played"))
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(sw.InvalidFile, match="is a file"):
            certified(out=place)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(made=3),
        lambda c: c["plan"].update(rounds=0),
        lambda c: c["plan"].update(seed=2**70),
        lambda c: c.update(batches=[]),
        lambda c: c["policy"].update(kind="Magic"),
        lambda c: c.pop("margins"),
    ],
)
def test_a_certificate_that_cannot_be_played_is_refused(change: Any, tmp_path: Path) -> None:
    certified(runs=4, out=tmp_path)
    path = tmp_path / "certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(sw.StagewiseError):
        sw.verify(path)


def test_the_part_is_chosen_by_a_seed(tmp_path: Path) -> None:
    certified(runs=4, out=tmp_path)
    with pytest.raises(sw.InvalidProblem, match="seed is -1"):
        sw.verify(tmp_path, seed=-1)


@pytest.mark.parametrize("part", [0.0, 1.5, float("nan")])
def test_a_part_must_be_a_share(part: float, tmp_path: Path) -> None:
    certified(runs=2, out=tmp_path)
    with pytest.raises(sw.InvalidProblem, match="part is"):
        sw.verify(tmp_path, part=part)


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("{}", encoding="utf-8")
    with pytest.raises(sw.InvalidFile, match="no certificate"):
        sw.verify(tmp_path)
    with pytest.raises(sw.InvalidFile, match="no certificate"):
        sw.verify(tmp_path / "nowhere.json")
