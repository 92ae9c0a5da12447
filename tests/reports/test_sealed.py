"""What is read back is what was written, to the byte, or is refused in a sentence: damage never becomes a number."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.reports import output_files

FIELDS = ("rounds", "regret", "reward", "cost", "max_cost", "violations", "optimum", "runs")
FILES = ("curves.parquet", "runs.parquet", "manifest.json")
ARMS = sw.ArmsWorld(reward=[0.1, 0.7, 0.4], cost=[0.0, 0.5, 0.1])
POLICY = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)


def played(**settings: Any) -> sw.Result:
    return sw.simulate(POLICY, ARMS, **({"rounds": 40, "runs": 3, "record_points": 10, "audit": True} | settings))


def same(one: sw.Result, other: sw.Result) -> bool:
    assert one.audit is not None
    assert other.audit is not None
    audits = all(np.array_equal(one.audit[name], other.audit[name]) for name in one.audit)
    return audits and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


def damages(content: bytes, count: int, rng: np.random.Generator) -> Iterator[bytes]:
    """Yield the content with a bit turned, a stretch blanked, cut out or doubled, or its end missing."""
    for kind in np.arange(count) % 5:
        at, length = int(rng.integers(len(content))), int(rng.integers(1, 64))
        before, hit, after = content[:at], content[at : at + length], content[at + length :]
        flipped = bytes([content[at] ^ (1 << int(rng.integers(8)))])
        yield (
            before + flipped + content[at + 1 :],
            before + bytes(len(hit)) + after,
            before + after,
            before + hit + hit + after,
            before,
        )[kind]


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_damage_anywhere_is_refused_or_changes_nothing(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    messages: list[str] = []
    played().save(tmp_path)
    written_result = sw.Result.load(tmp_path)
    content = (tmp_path / name).read_bytes()
    for damaged in damages(content, 600, np.random.default_rng(7)):
        (tmp_path / name).write_bytes(damaged)
        try:
            loaded = sw.Result.load(tmp_path)
        except sw.InvalidFile as error:
            messages.append(str(error))
        else:
            assert damaged == content or name == "manifest.json"
            assert same(loaded, written_result)
            assert loaded.manifest == written_result.manifest
    assert len(messages) > 500
    assert all(str(tmp_path) in sentence and "\n" not in sentence for sentence in messages)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", FILES[:2])
def test_a_file_that_is_missing_or_another_results_is_refused(name: str, tmp_path: Path) -> None:
    played(out=tmp_path / "one")
    played(runs=[4, 5, 6]).save(tmp_path / "other")
    (tmp_path / "one" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with refused(sw.InvalidFile, ErrorCode.DIGEST_MISMATCH):
        sw.Result.load(tmp_path / "one")
    (tmp_path / "one" / name).unlink()
    with refused(sw.InvalidFile, ErrorCode.FILE_UNREADABLE):
        sw.Result.load(tmp_path / "one")


def test_a_manifest_that_says_something_else_is_refused(tmp_path: Path) -> None:
    played().save(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for change in ({"seed": 1}, {"digest": "0" * 64}, {"files": {}}, {"version": 1}, {"more": 1}):
        path.write_text(json.dumps({**manifest, **change}), encoding="utf-8")
        with refused(sw.InvalidFile, ErrorCode.DIGEST_MISMATCH):
            sw.Result.load(tmp_path)
    path.write_text(json.dumps({name: manifest[name] for name in manifest if name != "digest"}), encoding="utf-8")
    with refused(sw.InvalidFile, ErrorCode.DIGEST_MISMATCH):
        sw.Result.load(tmp_path)


def test_a_damaged_run_is_not_played_on(tmp_path: Path) -> None:
    played(out=tmp_path)
    path = tmp_path / "parts" / "run-000001" / "runs.parquet"
    path.write_bytes((tmp_path / "parts" / "run-000002" / "runs.parquet").read_bytes())
    with refused(sw.InvalidFile, ErrorCode.DIGEST_MISMATCH):
        played(out=tmp_path, runs=4)


def test_what_nothing_vouches_for_is_refused_and_not_played_on(tmp_path: Path) -> None:
    played(out=tmp_path)
    for folder in (tmp_path, tmp_path / "parts" / "run-000001"):
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        unsealed = {name: manifest[name] for name in manifest if name not in ("files", "digest")}
        (folder / "manifest.json").write_text(json.dumps({**unsealed, "version": 1}), encoding="utf-8")
        with refused(sw.InvalidFile, ErrorCode.FILE_OF_OTHER_VERSION):
            sw.Result.load(folder)
    with refused(sw.InvalidFile, ErrorCode.FILE_OF_OTHER_VERSION):
        played(out=tmp_path)


def test_a_save_that_is_cut_short_leaves_nothing_to_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(seed=1).save(tmp_path)
    written: list[Path] = []

    def stopping(path: Path, content: bytes) -> None:
        written.append(path)
        if len(written) == 2:
            raise KeyboardInterrupt
        path.write_bytes(content)

    monkeypatch.setattr(output_files, "write_bytes", stopping)
    with pytest.raises(KeyboardInterrupt):
        played().save(tmp_path)
    with refused(sw.InvalidFile, ErrorCode.FILE_NOT_FOUND):
        sw.Result.load(tmp_path)
