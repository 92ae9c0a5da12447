"""The commands: they do what they say, and refuse a file with the key, the value and what was expected."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import GOOD, called, rejected, spec

import stagewise as sw
from stagewise.cli.main import app
from stagewise.problem.errors import ErrorCode

ROOT = Path(__file__).parents[2]


def test_simulate_keeps_what_simulate_returns(tmp_path: Path) -> None:
    code, said = called("simulate", spec(tmp_path, GOOD), "--out", tmp_path / "out", "--quiet")
    assert code == 0
    assert "LCLUCB, 2 runs of 20 rounds" in said
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.3, noise=0.1)
    world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet([[1.0, 0.0], [0.0, 1.0]]), noise=0.1)
    expected = sw.simulate(policy, world, rounds=20, runs=2)
    assert (sw.Result.load(tmp_path / "out").regret == expected.regret).all()
    assert (tmp_path / "out" / "result.png").stat().st_size > 1000


def test_compare_gives_one_table_and_one_picture(tmp_path: Path) -> None:
    table = GOOD[GOOD.index("[policy]") :]
    several = GOOD.replace(
        table, table.replace("[policy]", "[policies.one]") + table.replace("[policy]", "[policies.two]")
    )
    code, said = called("compare", spec(tmp_path, several), "--out", tmp_path / "out", "--quiet")
    assert code == 0
    rows = [re.sub(r"^\| \w+", "", line) for line in said.splitlines() if line.startswith(("| one", "| two"))]
    assert len(rows) == 2
    assert rows[0] == rows[1]  # the same policy met the same random numbers
    assert (tmp_path / "out" / "comparison.png").stat().st_size > 1000


@pytest.mark.parametrize("name", ["../../escape", "/tmp", "..", "a/b", "", ".", "comparison.md", "a\\nb"])
def test_a_policy_whose_name_does_not_do_for_a_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "one" / "two").mkdir(parents=True)
    several = GOOD.replace("[policy]", f'[policies."{name}"]')
    out = tmp_path / "one" / "two" / "out"
    rejected(ErrorCode.INVALID_NAME, "compare", spec(tmp_path, several), "--out", out, "--quiet")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["one", "spec.toml", "two"]


NAMES = ["$x^$", "a $ and $\\\\frac{$", "\\\\$x$"]


@pytest.mark.parametrize("name", NAMES)
def test_dollars_in_names_are_drawn_as_they_are(name: str, tmp_path: Path) -> None:
    named = GOOD.replace("[policy]", f'[policies."{name}"]')
    named = named.replace("threshold = 0.3", f'threshold = {{ "{name}" = 0.3 }}')
    code, said = called("compare", spec(tmp_path, named), "--out", tmp_path / "out", "--quiet")
    assert code == 0, said
    if name == NAMES[0]:
        alone = named.replace(f'[policies."{name}"]', "[policy]")
        assert called("simulate", spec(tmp_path, alone), "--out", tmp_path / "one", "--quiet")[0] == 0
        claim = ("--runs", 20, "--exhaustive", "--delta", 0.9, "--confidence", 0.5)
        assert called("certify", spec(tmp_path, alone), "--out", tmp_path / "page", "--quiet", *claim)[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("rounds = 20", "rounds = 20\ntypo = 3", ["'simulation.typo'", "3"]),
        ("rounds = 20", 'rounds = "many"', ["simulation.rounds", "'many'"]),
        ("rounds = 20", "rounds = -5", ["simulation.rounds", "-5"]),
        ("rounds = 20", "", ["simulation.rounds", "missing"]),
        ("rounds = 20", "round = 200", ["unknown key", "'simulation.round'"]),
        ("rounds = 20", "rounds = 20\nseed = -1", ["simulation.seed is -1", "0"]),
        ('kind = "LCLUCB"', 'kind = ["LCLUCB"]', ["policy.kind", "['LCLUCB']"]),
        ('kind = "LCLUCB"', "", ["policy.kind", "None"]),
        ("noise = 0.1\nsafe", "safe", ["'policy.noise'", "missing"]),
        ('kind = "linear"', 'kind = "quadratic"', ["world", "quadratic", "linear"]),
        ("noise = 0.1\nactions", "noise = 0.1\ncolour = 1\nactions", ["'world.colour'", "1"]),
        ('kind = "rays"', 'kind = "lines"', ["world.actions.kind", "'lines'", "'rays'"]),
        ('kind = "rays"', 'kind = "random-rays"', ["'world.actions.features'", "count, dimension"]),
        ("[[1.0, 0.0], [0.0, 1.0]]", "[[1.0], [0.0]]", ["number of features", "reward", "1", "2"]),
        ('kind = "LCLUCB"', 'kind = "Magic"', ["policy.kind", "'Magic'", "SafePosteriorSampling"]),
        ("threshold = 0.3", "threshold = 0.3\nalpha = 2", ["'policy.alpha'", "2"]),
        ("threshold = 0.3", "threshold = 0.0", ["0.0", "threshold"]),
        ("threshold = 0.3", "", ["threshold", "missing"]),
        ("safe_action = { features = [0.0, 0.0] }", "safe_action = 3", ["policy.safe_action", "3", "table"]),
        ("[policy]", "[strategy]", ["'strategy'"]),
        ("[simulation]", "[simulation", ["TOML"]),
    ],
)
def test_a_bad_file_is_refused_before_anything_runs(old: str, new: str, parts: list[str], tmp_path: Path) -> None:
    assert old in GOOD
    code, said = called("simulate", spec(tmp_path, GOOD.replace(old, new, 1)), "--out", tmp_path / "out")
    assert code == 2
    for part in [*parts, "spec.toml"]:
        assert part in said.replace("\n", "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [("simulate",), ("compare",), ("certify", "--runs", 10)], ids=str)
def test_a_place_that_cannot_be_written_to_is_refused_in_a_line(words: tuple[object, ...], tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine", encoding="utf-8")
    for out in (taken, taken / "below"):
        code, said = called(words[0], spec(tmp_path, GOOD), *words[1:], "--out", out, "--quiet")
        assert code == 2
        assert said.startswith("stagewise: ")
        assert said.count("\n") == 1
    assert taken.read_text(encoding="utf-8") == "mine"


def test_a_full_disk_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "result.png")

    monkeypatch.setattr("stagewise.reports.style.write_figure", fail)
    code, said = called("simulate", spec(tmp_path, GOOD), "--out", tmp_path / "out", "--quiet")
    assert code == 2
    assert said == "stagewise: result.png: No space left on device; free some space or choose another folder\n"


def test_where_the_paper_is_not_installed_a_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewise.cli.main.entry_points", lambda **_: [])
    code, said = called("reproduce", "figure-1", "--size", "smoke")
    assert code == 2
    assert said.startswith("stagewise: ")
    assert "make reproduce" in said
    assert said.count("\n") == 1


def test_the_version_is_told() -> None:
    assert called("--version") == (0, f"stagewise {sw.__version__}\n")


def test_the_package_can_be_run_as_a_module() -> None:
    told = subprocess.run([sys.executable, "-m", "stagewise", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"stagewise {sw.__version__}\n"


def test_thresholds_of_every_kind_can_be_written(tmp_path: Path) -> None:
    text = GOOD.replace("cost = [0.8, 0.6]", "cost = [[0.8, 0.6], [0.1, 0.2]]").replace(
        "threshold = 0.3", "threshold = { wear = 0.3, yield = { at_least = -0.5 } }"
    )
    assert called("simulate", spec(tmp_path, text), "--out", tmp_path / "out", "--quiet")[0] == 0
    assert sw.Result.load(tmp_path / "out").manifest["thresholds"] == {"wear": 0.3, "yield": -0.5}


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_the_examples_are_accepted(path: Path) -> None:
    from stagewise.cli.spec import read_spec

    if "[simulation]" not in path.read_text(encoding="utf-8"):
        code, told = called("problem", path)[:2]
        assert (code, str(sw.Problem.load(path)) in told) == (0, True)
    else:
        assert read_spec(path).policies


def test_every_command_and_option_stands_in_its_document() -> None:
    document = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"stagewise {command.name or command.callback.__name__}" in document
    for option in ("--out", "--quiet"):
        assert option in document
