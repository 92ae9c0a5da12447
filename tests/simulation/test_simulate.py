"""Runs are functions of seed and run alone, and what is kept of them is right."""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.reports import output_files

TARGETS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
WORLD = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(TARGETS), noise=0.1)
SAFE = sw.SafeAction(features=[0.0, 0.0])
POLICY = sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.1)
FIELDS = ("regret", "reward", "cost", "max_cost", "violations", "optimum")


def played(**settings: Any) -> sw.Result:
    return sw.simulate(POLICY, WORLD, **({"rounds": 400, "runs": 3, "seed": 5} | settings))


def assert_same(one: sw.Result, other: sw.Result) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


def test_a_run_alone_is_the_run_among_others() -> None:
    among, alone = played(runs=10), played(runs=[7])
    assert np.array_equal(among.regret[7], alone.regret[0])
    assert not np.array_equal(among.regret[7], among.regret[6])


@pytest.mark.long
@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_results_do_not_depend_on_the_executor(pool: Any) -> None:
    with pool(2) as executor:
        assert_same(played(executor=executor), played())


def test_recording_changes_nothing_but_the_record() -> None:
    fine, coarse = played(record_points=400), played(record_points=40)
    np.testing.assert_array_equal(fine.regret[:, 9::10], coarse.regret)
    np.testing.assert_allclose(fine.reward.reshape(3, 40, 10).mean(axis=2), coarse.reward, rtol=1e-12)
    for field in ("max_cost", "violations"):
        np.testing.assert_array_equal(getattr(fine, field), getattr(coarse, field))


def test_other_seeds_give_other_runs() -> None:
    assert not np.array_equal(played(seed=5).regret, played(seed=6).regret)


def test_every_round_counts_for_costs_and_violations() -> None:
    free = sw.LinUCB(noise=0.1, threshold=0.3, safe_action=SAFE)
    result = sw.simulate(free, WORLD, rounds=50, runs=2, seed=1, record_points=50)
    np.testing.assert_array_equal(result.max_cost[:, 0], result.cost[:, :, 0].max(axis=1))
    np.testing.assert_array_equal(result.violations, (result.cost[:, :, 0] > 0.3).sum(axis=1))
    assert result.violations.min() > 0


def test_regret_is_against_the_best_feasible_point() -> None:
    result = played()
    costs, rewards = TARGETS @ [0.8, 0.6], TARGETS @ [0.6, 0.8]
    best = max(np.minimum(1.0, 0.3 / costs) * rewards)
    np.testing.assert_allclose(result.optimum, best, rtol=1e-12)
    lengths = np.diff(result.rounds, prepend=0)
    np.testing.assert_allclose(result.regret[:, -1], ((best - result.reward) * lengths).sum(axis=1), rtol=1e-9)


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    result = played()
    result.save(tmp_path / "here")
    loaded = sw.Result.load(tmp_path / "here")
    assert_same(result, loaded)
    assert loaded.manifest == json.loads(json.dumps(result.manifest))
    assert not list((tmp_path / "here").glob("*.part"))


def test_a_folder_that_is_no_result_is_refused(tmp_path: Path) -> None:
    with refused(sw.InvalidFile, ErrorCode.FILE_NOT_FOUND):
        sw.Result.load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"rounds": 0}, ErrorCode.OUT_OF_RANGE),
        ({"rounds": 1.5}, ErrorCode.WRONG_TYPE),
        ({"runs": 0}, ErrorCode.OUT_OF_RANGE),
        ({"runs": []}, ErrorCode.WRONG_TYPE),
        ({"runs": [1, 1]}, ErrorCode.WRONG_TYPE),
        ({"runs": [0.5]}, ErrorCode.WRONG_TYPE),
        ({"runs": "all"}, ErrorCode.WRONG_TYPE),
        ({"rounds": 2**70}, ErrorCode.OUT_OF_RANGE),
        ({"record_points": 0}, ErrorCode.OUT_OF_RANGE),
        ({"seed": -1}, ErrorCode.OUT_OF_RANGE),
        ({"seed": 2**64}, ErrorCode.OUT_OF_RANGE),
        ({"seed": 1.5}, ErrorCode.WRONG_TYPE),
        ({"backend": "gpu"}, ErrorCode.INVALID_CHOICE),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], part: str) -> None:
    with refused(sw.InvalidProblem, part):
        played(**settings)


ARMS = sw.ArmsWorld(reward=[0.0, 0.3, 0.2], cost=[0.0, 0.1, 0.1])


@pytest.mark.parametrize("arms", [2, 4])
@pytest.mark.parametrize("kind", ["OPB", "UCB"])
def test_a_policy_of_other_arms_is_refused(kind: str, arms: int) -> None:
    """The compiled loop checks no bounds: it would read what is not there."""
    safe = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
    policy = sw.OPB(arms=arms, safe_action=safe, threshold=0.2) if kind == "OPB" else sw.UCB(arms=arms)
    with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
        sw.simulate(policy, ARMS, rounds=10)


@pytest.mark.parametrize("policy", [None, sw.LCLUCB, 3])
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    with refused_with(sw.InvalidProblem, ErrorCode.MISSING_VALUE, ErrorCode.WRONG_TYPE):
        sw.simulate(policy, WORLD, rounds=10)


@pytest.mark.parametrize("settings", [{"executor": "magic"}, {"executor": "processes:0"}, {"backend": "cuda"}], ids=str)
def test_a_refusal_leaves_no_folder(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(sw.InvalidProblem):
        played(out=tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_hold_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with refused(sw.InvalidFile, ErrorCode.FILE_NOT_WRITABLE):
            played(out=place)
        with refused(sw.InvalidFile, ErrorCode.FILE_NOT_WRITABLE):
            played().save(place)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_result_is_shown_with_its_standard_error() -> None:
    result = played()
    assert f"± {np.std(result.regret[:, -1], ddof=1) / np.sqrt(3):,.1f}," in repr(result)
    assert "nan" not in repr(played(runs=1))


CURVES, RUNS = "curves.parquet", "runs.parquet"


def vouched(folder: Path) -> Path:
    """Let the manifest vouch for the tables as they are now: what is refused then is refused for what is in them."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest["digest"], manifest["files"]
    output_files.write_with_manifest(folder, manifest, {name: (folder / name).read_bytes() for name in (CURVES, RUNS)})
    return folder


def holding(name: str, content: Callable[[bytes], bytes]) -> Callable[[Path], Any]:
    """Return what gives a file another content."""
    return lambda folder: (folder / name).write_bytes(content((folder / name).read_bytes()))


def told(name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], Any]:
    """Return what changes the columns of a table."""
    return holding(
        name, lambda content: output_files.to_parquet(change(output_files.from_parquet(content, Path(name))))
    )


SPOILED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut short": (holding(CURVES, lambda whole: whole[:99]), ErrorCode.FILE_CORRUPT),
    "empty": (holding(RUNS, lambda _: b""), ErrorCode.FILE_CORRUPT),
    "damaged": (holding(RUNS, lambda _: b"PAR1" + bytes(99) + b"PAR1"), ErrorCode.FILE_CORRUPT),
    "another table": (
        lambda folder: (folder / CURVES).write_bytes((folder / RUNS).read_bytes()),
        ErrorCode.FILE_CORRUPT,
    ),
    "a row too few": (
        told(CURVES, lambda rows: {name: column[:-1] for name, column in rows.items()}),
        ErrorCode.FILE_CORRUPT,
    ),
    "no runs": (
        told(RUNS, lambda rows: {name: column[:0] for name, column in rows.items()}),
        ErrorCode.FILE_CORRUPT,
    ),
    "other runs": (
        told(RUNS, lambda rows: {**rows, "run": rows["run"] + 1}),
        ErrorCode.FILE_CORRUPT,
    ),
    "runs of other lengths": (
        told(CURVES, lambda rows: {**rows, "round": np.sort(rows["round"])}),
        ErrorCode.FILE_CORRUPT,
    ),
}


@pytest.mark.parametrize(("spoil", "message"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_result_is_refused_for_what_is_wrong_with_it(spoil: Any, message: str, tmp_path: Path) -> None:
    played(record_points=20).save(tmp_path)
    spoil(tmp_path)
    with refused(sw.InvalidFile, ErrorCode.DIGEST_MISMATCH):
        sw.Result.load(tmp_path)
    with refused(sw.InvalidFile, message):
        sw.Result.load(vouched(tmp_path))


def test_tables_that_were_written_again_with_digests_that_fit_are_read(tmp_path: Path) -> None:
    """Else all the spoiled ones would be refused for their digests."""
    played(record_points=20).save(tmp_path)
    told(RUNS, lambda rows: {**rows, "violations": rows["violations"] + 7})(tmp_path)
    assert sw.Result.load(vouched(tmp_path)).violations.tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (CURVES, None, ErrorCode.FILE_UNREADABLE),
        ("manifest.json", "[]", ErrorCode.FILE_WRONG_KIND),
        ("manifest.json", '{"format"', ErrorCode.FILE_CORRUPT),
        ("manifest.json", '{"format": "stagewise-result", "version": 2}', ErrorCode.FILE_OF_OTHER_VERSION),
    ],
    ids=["no table", "a list", "half a manifest", "a manifest of nothing"],
)
def test_a_result_that_lacks_a_part_is_refused(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    played(record_points=20).save(tmp_path)
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with refused(sw.InvalidFile, message):
        sw.Result.load(tmp_path)


def test_a_folder_of_several_results_names_them(tmp_path: Path) -> None:
    played().save(tmp_path / "one")
    with refused(sw.InvalidFile, ErrorCode.FILE_NOT_FOUND):
        sw.Result.load(tmp_path)


def test_a_world_where_the_safe_action_is_not_safe_is_refused() -> None:
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=[0.5, 0.5]), threshold=0.3, noise=0.1)
    with refused(sw.InvalidProblem, ErrorCode.SAFE_ACTION_OVER_LIMIT):
        sw.simulate(policy, WORLD, rounds=10)


def test_a_saved_result_is_plain_parquet(tmp_path: Path) -> None:
    import duckdb

    result = played(record_points=20)
    result.save(tmp_path)
    rows = duckdb.sql(
        f"select run, round, regret, cost_1 from '{tmp_path}/curves.parquet' order by run, round"
    ).fetchall()
    assert [row[:2] for row in rows] == [(run, t) for run in range(3) for t in result.rounds.tolist()]
    assert [row[2] for row in rows] == result.regret.ravel().tolist()
    assert [row[3] for row in rows] == result.cost[:, :, 0].ravel().tolist()


@pytest.mark.parametrize("reader", ["pandas", "polars"])
def test_other_readers_find_the_same_columns(reader: str, tmp_path: Path) -> None:
    module = pytest.importorskip(reader)
    result = played(record_points=20)
    result.save(tmp_path)
    table = module.read_parquet(tmp_path / "curves.parquet")
    assert list(table["regret"]) == result.regret.ravel().tolist()
    assert list(module.read_parquet(tmp_path / "runs.parquet")["violations"]) == result.violations.tolist()


@pytest.mark.long
@pytest.mark.parametrize("stretch", [1, 7, 64, 1000])
@pytest.mark.parametrize("kind", ["rays", "sampled", "mixtures", "fresh", "arms", "many arms"])
def test_a_run_does_not_depend_on_how_it_is_cut(kind: str, stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, world = cut(kind)
    whole = sw.simulate(policy, world, rounds=70, runs=1, seed=3, record_points=7)
    monkeypatch.setattr("stagewise.simulation.run.CHUNK_ROUNDS", stretch)
    pieces = sw.simulate(policy, world, rounds=70, runs=1, seed=3, record_points=7)
    for field in ("regret", "reward", "cost", "max_cost", "violations"):
        assert np.array_equal(getattr(whole, field), getattr(pieces, field))


def cut(kind: str) -> tuple[Any, Any]:
    """Return a policy and a world of every loop."""
    rng = np.random.default_rng(4)
    theta, mu = (np.abs(row) / np.linalg.norm(row) for row in rng.normal(size=(2, 4)))
    if "arms" in kind:
        count = 5 if kind == "arms" else 300
        means = rng.uniform(size=(2, count))
        means[:, 0] = [0.1, 0.0]
        safe = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
        policy = sw.OPB(arms=count, safe_action=safe, threshold=0.3)
        return policy, sw.ArmsWorld(reward=means[0], cost=means[1])
    actions = sw.RandomRaySet(count=6, dimension=4) if kind == "fresh" else sw.RaySet(rng.normal(size=(6, 4)) / 2.0)
    policies = {"sampled": sw.SafeLTS, "mixtures": sw.OPLB}
    safe = sw.SafeAction(features=np.zeros(4))
    policy = policies.get(kind, sw.LCLUCB)(safe_action=safe, threshold=0.4, noise=0.1, mean_cost_bound=1.0)
    return policy, sw.LinearWorld(reward=theta, cost=mu, actions=actions, noise=0.1)


def test_an_interrupted_simulation_continues_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["stagewise.simulation.simulate"]
    whole, calls = module.play, []

    def stopping(*task: Any) -> Any:
        calls.extend(task[2])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(*task)

    monkeypatch.setattr(module, "play", stopping)
    with pytest.raises(KeyboardInterrupt):
        played(runs=5, out=tmp_path)
    assert sorted(part.name for part in (tmp_path / "parts").iterdir()) == ["run-000000", "run-000001"]
    continued = played(runs=5, out=tmp_path)
    assert calls == [0, 1, 2, 2, 3, 4]
    monkeypatch.undo()
    assert_same(continued, played(runs=5))
    assert_same(continued, sw.Result.load(tmp_path))


def test_a_folder_of_another_plan_is_refused(tmp_path: Path) -> None:
    played(out=tmp_path)
    with refused(sw.InvalidFile, ErrorCode.FILE_EXISTS):
        played(out=tmp_path, seed=6)
