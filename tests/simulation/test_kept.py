"""A certificate that was cut short goes on from its folder."""

from pathlib import Path
from typing import Any

import pytest
from tests.problem.refusal import refused
from tests.simulation.certified import FIXED, certified, without_times

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.simulation import certify as certify_module
from stagewise.simulation import simulate as jobs
from stagewise.simulation.run import play

pytestmark = pytest.mark.long


class PowerCut(Exception):
    """Ends a certificate in the middle."""


def test_a_certificate_that_was_cut_short_goes_on_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[int] = []

    def counting(*task: Any) -> Any:
        if len(played) == 3:
            raise PowerCut
        played.append(task[2][0])
        return play(*task)

    whole = certified(rounds=5, runs=100, stop_early=False)
    monkeypatch.setattr(jobs, "play", counting)
    with pytest.raises(PowerCut):
        certified(rounds=5, runs=100, stop_early=False, out=tmp_path)
    assert not (tmp_path / "certificate.json").exists()
    before = list(played)
    monkeypatch.setattr(jobs, "play", play)
    with refused(sw.InvalidFile, ErrorCode.FILE_EXISTS, "seed"):
        certified(rounds=5, runs=100, stop_early=False, out=tmp_path, seed=1)
    assert len(list((tmp_path / "batches" / "parts").iterdir())) == 3
    played.clear()
    played.extend([-1] * 4)  # no more power cuts
    monkeypatch.setattr(jobs, "play", counting)
    again = certified(rounds=5, runs=100, stop_early=False, out=tmp_path)
    assert not set(before) & set(played)
    assert without_times(again) == without_times(whole)
    assert not (tmp_path / "batches").exists()


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the one batch that a certificate saved before it was cut short."""

    def cut(*task: Any) -> Any:
        if task[2][0] > 0:
            raise PowerCut
        return play(*task)

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "play", cut)
        with pytest.raises(PowerCut):
            certified(rounds=5, runs=100, stop_early=False, out=tmp_path)
    (found,) = (tmp_path / "batches" / "parts").iterdir()
    return found


def test_a_batch_that_was_tampered_with_is_refused(batch: Path, tmp_path: Path) -> None:
    path = batch / "runs.parquet"
    content = path.read_bytes()
    for damaged in (b"nothing", content[:-1], content[:400] + bytes([content[400] ^ 1]) + content[401:]):
        path.write_bytes(damaged)
        with refused(sw.InvalidFile, ErrorCode.DIGEST_MISMATCH):
            certified(rounds=5, runs=100, stop_early=False, out=tmp_path)


def test_a_batch_that_nothing_vouches_for_is_played_again(batch: Path, tmp_path: Path) -> None:
    (batch / "manifest.json").unlink()
    again = certified(rounds=5, runs=100, stop_early=False, out=tmp_path)
    assert without_times(again) == without_times(certified(rounds=5, runs=100, stop_early=False))


@pytest.mark.parametrize(("before", "after"), [(42, 60), (60, 42)])
def test_a_certificate_of_other_runs_takes_no_part_of_a_batch(
    before: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certify_module, "compute_batch_size", lambda *_: 10)  # as for any number of runs from 40,000 on
    with monkeypatch.context() as patched:
        patched.setattr(certify_module, "build_content", interrupted)
        with pytest.raises(PowerCut):
            certified(rounds=5, runs=before, stop_early=False, out=tmp_path)
    assert len(list((tmp_path / "batches" / "parts").iterdir())) == -(-before // 10)
    again = certified(rounds=5, runs=after, stop_early=False, out=tmp_path)
    assert [batch["runs"] for batch in again.content["batches"]] == [min(10, after - n) for n in range(0, after, 10)]
    assert without_times(again) == without_times(certified(rounds=5, runs=after, stop_early=False))
    assert sw.verify_certificate(tmp_path, replay_fraction=1.0).faults == ()


def interrupted(*_: Any) -> None:
    raise PowerCut


def test_nothing_is_kept_of_worlds_that_no_file_can_tell_apart(tmp_path: Path) -> None:
    certified(world=lambda run: FIXED, rounds=5, runs=40, out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["certificate.html", "certificate.json"]
