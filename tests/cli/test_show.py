"""`show` says of everything that stagewise wrote what it is, and of anything else that it is not ours."""

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.commands import GOOD, called, spec

import stagewise as sw

ROOT = Path(__file__).parents[2]
CLAIM = ("--runs", 20, "--exhaustive", "--delta", 0.9, "--confidence", 0.5, "--quiet")
PAIR = GOOD.replace("[policy]", "[policies.one]") + GOOD[GOOD.index("[policy]") :].replace("[policy]", "[policies.two]")


def shown(path: Path) -> str:
    code, said = called("show", path)
    assert code == 0, said
    return said


def refused(path: Path) -> str:
    code, said = called("show", path)
    assert code == 2
    assert said.count("\n") == 1
    assert said.startswith("stagewise: ")
    return said


def test_a_result_is_told_with_its_limits_and_drawn_again(tmp_path: Path) -> None:
    text = GOOD.replace("threshold = 0.3", "threshold = { wear = 0.3 }")
    assert called("simulate", spec(tmp_path, text), "--out", tmp_path / "out", "--quiet")[0] == 0
    (tmp_path / "out" / "result.png").unlink()
    said = shown(tmp_path / "out")
    assert "LCLUCB, 2 runs of 20 rounds" in said
    assert "Limits: wear 0.3" in said
    assert (tmp_path / "out" / "result.png").stat().st_size > 1000
    for name in ("curves.parquet", "manifest.json"):
        assert f"stagewise show {tmp_path / 'out'}" in shown(tmp_path / "out" / name)


def test_a_comparison_and_a_sweep_are_told_as_tables(tmp_path: Path) -> None:
    file = spec(tmp_path, PAIR)
    assert called("compare", file, "--out", tmp_path / "both", "--quiet")[0] == 0
    said = shown(tmp_path / "both")
    assert "A comparison of 2 policies" in said
    assert "| one |" in said
    assert "| two |" in said
    assert called("sweep", file, "--out", tmp_path / "swept", "--quiet")[0] == 0
    said = shown(tmp_path / "swept")
    assert "A sweep of 2 cells" in said
    assert "| one, world, own-threshold, seed-0 |" in said


def test_what_was_begun_and_not_finished_is_told(tmp_path: Path) -> None:
    file = spec(tmp_path, PAIR)
    called("compare", file, "--out", tmp_path / "both", "--quiet")
    (tmp_path / "both" / "two" / "manifest.json").unlink()
    assert "1 more unfinished, run the same command again" in shown(tmp_path / "both")
    assert "Unfinished: 2 runs stored" in shown(tmp_path / "both" / "two")


def test_results_below_a_folder_of_somebody_else_are_told_and_nothing_is_written(tmp_path: Path) -> None:
    assert called("simulate", spec(tmp_path, GOOD), "--out", tmp_path / "out", "--quiet")[0] == 0
    before = sorted(tmp_path.iterdir())
    assert "1 result below this folder" in shown(tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_a_certificate_is_told_by_its_folder_and_by_its_file(tmp_path: Path) -> None:
    assert called("certify", spec(tmp_path, GOOD), "--out", tmp_path / "cert" / "one", *CLAIM)[0] == 0
    for place in (tmp_path / "cert" / "one", tmp_path / "cert" / "one" / "certificate.json"):
        said = shown(place)
        assert said.startswith("supported: ")
        assert "stagewise certify --verify" in said
    assert "1 certificate:\n  one  supported: " in shown(tmp_path / "cert")


def test_a_reproduction_is_told_by_its_claims(tmp_path: Path) -> None:
    assert called("simulate", spec(tmp_path, GOOD), "--out", tmp_path / "r", "--quiet")[0] == 0
    part = tmp_path / "paper" / "results" / "figure-1" / "lc-lucb" / "parts" / "run-000"
    shutil.copytree(tmp_path / "r", part)
    assert "An unfinished reproduction: 1 run stored" in shown(tmp_path / "paper")
    claims = [{"experiment": "figure-1", "verdict": verdict} for verdict in ("holds", "holds", "does not hold")]
    (tmp_path / "paper" / "claims.json").write_text(json.dumps(claims), encoding="utf-8")
    assert "A reproduction of 1 experiment, 3 claims: 2 holds, 1 does not hold" in shown(tmp_path / "paper")


def test_a_saved_agent_and_its_snapshot_are_told(tmp_path: Path) -> None:
    limits = {"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")}
    problem = sw.Problem(actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"), limits=limits)
    agent = sw.Agent(problem, seed=1)
    agent.learn(agent.decide().id, click=1, opt_out=0)
    agent.save(tmp_path / "agent.json")
    (tmp_path / "snapshot.json").write_bytes(bytes(agent.snapshot()))
    said = shown(tmp_path / "agent.json")
    assert "A saved agent: 1 decision, 1 outcome learned" in said
    assert "'nothing' is safe" in said
    assert "A snapshot of ProblemPolicy, 1 outcomes learned" in shown(tmp_path / "snapshot.json")
    (tmp_path / "agent.json").write_text('{"format": "stagewise-agent", "version": 4}', encoding="utf-8")
    assert "agent.json" in refused(tmp_path / "agent.json")


def test_the_store_of_a_server_is_told_with_the_commands_that_read_it(tmp_path: Path) -> None:
    pytest.importorskip("msgspec")
    from stagewise.server.store.factory import open_store

    open_store(str(tmp_path / "server.db")).close()
    said = shown(tmp_path / "server.db")
    assert "The store of a server" in said
    assert f"stagewise audit verify {tmp_path / 'server.db'}" in said
    code, said = called("audit", "verify", tmp_path / "server.db")
    assert (code, said.strip()) == (0, "the store has no rows: nothing was verified")


def test_files_that_people_write_are_told_with_their_command() -> None:
    assert "stagewise simulate" in shown(ROOT / "examples" / "campaign.toml")
    assert "stagewise compare" in shown(ROOT / "examples" / "dose.toml")
    assert "stagewise sweep" in shown(ROOT / "examples" / "sweep.toml")
    assert "stagewise problem" in shown(ROOT / "examples" / "templates.toml")


def test_any_other_json_of_ours_is_told_by_its_format(tmp_path: Path) -> None:
    (tmp_path / "later.json").write_text('{"format": "stagewise-forecast"}', encoding="utf-8")
    assert "later.json was written by stagewise, in the format 'stagewise-forecast'" in shown(tmp_path)


def test_something_else_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "stagewise did not write it" in refused(tmp_path / "empty")
    for name, content in (("a.txt", b"x"), ("b.json", b"[1"), ("c.db", b"SQLite format 3\0xx"), ("d.parquet", b"PAR1")):
        (tmp_path / name).write_bytes(content)
        assert "stagewise did not write it" in refused(tmp_path / name)
    assert "does not exist" in refused(tmp_path / "nowhere")
    assert "a device" in refused(Path("/dev/null"))
