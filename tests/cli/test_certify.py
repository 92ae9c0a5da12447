"""`stagewise certify`: files, exit codes, refusals, and their document."""

import json
import re
from pathlib import Path

import pytest
from tests.cli.commands import GOOD, called, rejected, spec
from typer.testing import CliRunner

import stagewise as sw
from stagewise.cli.main import app, certify, simulate
from stagewise.problem.errors import ErrorCode

ROOT = Path(__file__).parents[2]
NOISY = GOOD.replace("rounds = 20", "rounds = 5").replace("noise = 0.1", "noise = 0.5")


def test_a_supported_claim_leaves_with_0_and_can_be_verified(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said = called("certify", spec(tmp_path, NOISY), "--runs", 300, "--exhaustive", "--out", out, "--quiet")
    assert code == 0, said
    assert said.startswith("supported: ")
    assert (out / "certificate.html").stat().st_size > 10_000
    code, said = called("certify", "--verify", out / "certificate.json", "--seed", 3)
    assert code == 0
    assert "is confirmed" in said
    assert called("certify", "--verify", out / "certificate.json", "--seed", 3)[1] == said
    assert (
        "compared only with --fraction 1: first_violation, optimism, regret, margins, first_near_optimal_round"
        in " ".join(said.split())
    )


@pytest.mark.usefixtures("undrawn")
def test_families_are_named_in_the_file(tmp_path: Path) -> None:
    text = NOISY + '[certify]\nfamily = "random-sphere"\n'
    code, _ = called("certify", spec(tmp_path, text), "--runs", 300, "--exhaustive", "--out", tmp_path, "--quiet")
    assert code == 0
    assert sw.SimulationCertificate.load(tmp_path).content["world"]["family"] == "random-sphere"


def test_only_means_of_arms_are_spread(tmp_path: Path) -> None:
    text = NOISY + '[certify]\nfamily = "random-sphere"\nspread = 0.5\n'
    path = spec(tmp_path, text)
    rejected(ErrorCode.UNUSED_SETTING, "certify", path, "--runs", 10, "--out", tmp_path, "--quiet")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "noise = 0.5\nsafe",
            "noise = 0.05\nnorm_bound = 0.1\nmean_cost_bound = 10.0\ncheck_assumptions = false\nsafe",
        ),
        ("noise = 0.5\nactions", "noise = 10.0\nactions"),
    ],
    ids=["radius ten times too small", "noisier world"],
)
def test_a_refuted_claim_leaves_with_1(old: str, new: str, tmp_path: Path) -> None:
    assert old in NOISY
    path = spec(tmp_path, NOISY.replace(old, new))
    code, said = called("certify", path, "--runs", 1000, "--out", tmp_path, "--quiet")
    assert code == 1
    assert "refuted" in said


@pytest.mark.usefixtures("undrawn")
def test_an_undecided_claim_leaves_with_1(tmp_path: Path) -> None:
    code, said = called("certify", spec(tmp_path, NOISY), "--runs", 20, "--out", tmp_path, "--quiet")
    assert code == 1
    assert "undecided" in said
    assert "runs would be enough" in said


@pytest.mark.usefixtures("undrawn")
def test_delta_and_confidence_are_what_is_claimed(tmp_path: Path) -> None:
    words = ("--delta", 0.2, "--confidence", 0.9, "--exhaustive", "--runs", 40, "--out", tmp_path, "--quiet")
    called("certify", spec(tmp_path, NOISY), *words)
    content = sw.SimulationCertificate.load(tmp_path).content
    assert (content["claim"]["delta"], content["claim"]["confidence"]) == (0.2, 0.9)
    assert content["violations"]["exact"] is not None


@pytest.mark.usefixtures("undrawn")
def test_a_certificate_of_another_version_is_confirmed_and_the_version_named(tmp_path: Path) -> None:
    called("certify", spec(tmp_path, NOISY), "--runs", 40, "--out", tmp_path, "--quiet")
    path = tmp_path / "certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["made"]["versions"]["stagewise"] = "0.0.9"
    path.write_text(json.dumps(content), encoding="utf-8")
    code, said = called("certify", "--verify", path, "--fraction", 1)
    assert code == 0
    assert f"Made with stagewise 0.0.9; verified with stagewise {sw.__version__}." in " ".join(said.split())
    content["batches"][0]["regret"] += 1.0
    path.write_text(json.dumps(content), encoding="utf-8")
    code, said = called("certify", "--verify", path, "--fraction", 1)
    assert code == 1
    assert "stagewise 0.0.9" in said


@pytest.mark.usefixtures("undrawn")
def test_a_tampered_certificate_leaves_with_1(tmp_path: Path) -> None:
    called("certify", spec(tmp_path, NOISY), "--runs", 40, "--out", tmp_path, "--quiet")
    path = tmp_path / "certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["verdict"] = "supported"
    path.write_text(json.dumps(content), encoding="utf-8")
    code, said = called("certify", "--verify", path, "--fraction", 1)
    assert code == 1
    assert "is not confirmed" in said


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--verify", "nowhere.json"),
        ("SPEC", "--verify", "nowhere.json"),
        ("nowhere.toml",),
        ("SPEC", "--executor", "cuda"),
        ("SPEC", "--runs", "0"),
        ("SPEC", "--confidence", "2"),
    ],
)
def test_bad_input_leaves_with_2(words: tuple[str, ...], tmp_path: Path) -> None:
    path = spec(tmp_path, NOISY)
    given = [str(path) if word == "SPEC" else word for word in words]
    code, said = called("certify", *given, "--out", tmp_path / "out")
    assert code == 2
    assert "stagewise:" in said
    assert not (tmp_path / "out").exists()


def test_an_audit_can_be_asked_for(tmp_path: Path) -> None:
    path = spec(tmp_path, NOISY.replace("runs = 2", "runs = 2\naudit = true"))
    assert called("simulate", path, "--out", tmp_path / "out", "--quiet", "--executor", "processes:1")[0] == 0
    audit = sw.Result.load(tmp_path / "out").audit
    assert audit is not None
    assert audit["missed"].shape == (2, 2)


def test_every_option_stands_in_the_document() -> None:
    document = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    commands = {command.callback.__name__: command for command in app.registered_commands if command.callback}
    assert {certify.__name__, simulate.__name__} <= set(commands)
    for name in ("certify", "simulate"):
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
        options = set(re.findall(r"--[a-z]+", shown)) - {"--help"}
        assert len(options) >= 3
        for option in options:
            assert option in document, option
