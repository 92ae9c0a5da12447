"""Hostile paths for everything that reads or writes, and hostile values in a file of settings."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz.agents import POLICIES, working
from tests.fuzz.attack import Fault, faults, pairs, refused, singles
from tests.fuzz.calls import ARMS, PULLS, Call

import stagewise as sw
from stagewise.cli.spec import read_spec


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder of one's own: some hostile paths are good ones, and lead to a file."""
    (tmp_path / "file").write_text("a file", encoding="utf-8")
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "two")
    (tmp_path / "two" / "file").write_text("a file", encoding="utf-8")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an agent, a result and a certificate."""
    folder_path = tmp_path_factory.mktemp("kept")
    sw.Agent(PULLS).save(folder_path / "agent.json")
    sw.simulate(PULLS, ARMS, rounds=3, backend="python", progress=False, out=folder_path / "result")
    sw.certify(PULLS, ARMS, rounds=3, runs=2, backend="python", progress=False, out=folder_path / "certificate")
    return folder_path


NAMES = (
    *("Agent.save", "Agent.load", "Result.save", "Result.load", "Certificate.save", "Certificate.load"),
    "verify",
)


def calls(folder_path: Path) -> dict[str, Call]:
    agent, result = sw.Agent.load(folder_path / "agent.json"), sw.Result.load(folder_path / "result")
    certificate = sw.SimulationCertificate.load(folder_path / "certificate")
    again = {"path": folder_path / "certificate", "replay_fraction": 1.0, "seed": 0, "executor": None, "backend": None}
    return {
        "Agent.save": Call(agent.save, {"path": "agent.json"}),
        "Agent.load": Call(sw.Agent.load, {"path": folder_path / "agent.json", "policy": PULLS}),
        "Result.save": Call(result.save, {"folder": "result"}),
        "Result.load": Call(sw.Result.load, {"folder": folder_path / "result"}),
        "Certificate.save": Call(certificate.save, {"folder": "certificate"}),
        "Certificate.load": Call(sw.SimulationCertificate.load, {"path": folder_path / "certificate"}),
        "verify": Call(sw.verify_certificate, {**again, "policy": None, "world": None}),
    }


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", NAMES)
def test_hostile_paths_are_refused_in_a_sentence(name: str, kept: Path) -> None:
    call = calls(kept)[name]
    assert faults(call, [*singles(call), *pairs(call, 20, 1)]) == []


def test_an_agent_that_cannot_be_saved_is_as_before() -> None:
    agent = working(POLICIES["LCLUCB"])
    before = agent.state.memory.tobytes(), agent.round, agent.pending_count
    for path in (None, b"agent", "a\0b", "y" * 300, ".", "no/such/folder", "file/below"):
        assert refused(agent.save, {"path": path})
        assert (agent.state.memory.tobytes(), agent.round, agent.pending_count) == before


SPEC = """
[simulation]
rounds = 3
runs = 2
seed = 0
record_points = 2
backend = "python"
audit = false

[world]
kind = "linear"
reward = [0.3, 0.1]
cost = [0.1, 0.1]
noise = 0.1
outcomes = "gaussian"

[world.actions]
kind = "rays"
features = [[1.0, 0.0], [0.0, 1.0]]

[policy]
kind = "LCLUCB"
safe_action = {features = [0.5, 0.5], reward = 0.2, cost = 0.1}
threshold = {spend = 0.5}
noise = [0.1, 0.2]
delta = 0.05
radius = "joint"
split_delta = true
directions = 8

[certify]
family = "random-sphere"
"""

TOML = [
    *("true", "0", "-1", "1", "0.5", "nan", "-inf", "1e400", "5e-324", "9223372036854775808", "1" + "0" * 400),
    *('""', '"text"', '"two\\nlines"', '"\\u0000"', f'"{"x" * 5000}"', "1979-05-27", "07:32:00"),
    *("[]", "[[]]", "[0.5]", "[nan]", '["a"]', "[[1.0], [1.0, 2.0]]", "[" * 60 + "]" * 60, "[" * 5000 + "]" * 5000),
    *("{}", "{a = 1}", "{at_least = 0.1}", '{at_least = {at_least = "x"}}', "{times_safe = nan}"),
]


@pytest.mark.long
def test_hostile_settings_in_a_file_are_refused_in_a_sentence() -> None:
    found = []
    lines = SPEC.splitlines()
    Path("spec.toml").write_text(SPEC, encoding="utf-8")
    assert not refused(read_spec, {"path": Path("spec.toml")})
    for folder_path, line in enumerate(lines):
        key = re.match(r"\w+ = ", line)
        for value in TOML if key else []:
            changed = [*lines[:folder_path], f"{key[0] if key else ''}{value}", *lines[folder_path + 1 :]]
            Path("spec.toml").write_text("\n".join(changed), encoding="utf-8")
            try:
                refused(read_spec, {"path": Path("spec.toml")})
            except Fault as fault:
                found.append(f"{line} replaced by {value[:50]}: {fault}")
    assert found == []


@pytest.mark.long
def test_counts_of_numpy_are_written_as_numbers(tmp_path: Path) -> None:
    three = np.int64(3)
    settings = {"rounds": three, "runs": three, "seed": np.uint64(1), "backend": "python", "progress": False}
    certificate = sw.certify(PULLS, ARMS, out=tmp_path / "certificate", **settings)
    assert sw.SimulationCertificate.load(tmp_path / "certificate").content == certificate.content
    sw.simulate(PULLS, ARMS, out=tmp_path / "result", record_points=np.array(2), **settings)
    assert sw.Result.load(tmp_path / "result").manifest["seed"] == 1
