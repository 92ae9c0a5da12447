"""The loops of the authors' public code: they give the stored regrets, and a change in them is seen."""

from pathlib import Path

import pytest
from tests.engine.processes import asked
from tests.engine.test_plain_kernels import list_faults

import stagewise as sw
from stagewise.reports.result import merge_results
from stagewise_reproduction import published_loops
from stagewise_reproduction.cell import Play
from stagewise_reproduction.claim import HOLDS, check_stored
from stagewise_reproduction.instances import at_zero, shifted
from stagewise_reproduction.published import build_published_play
from stagewise_reproduction.stored import ROUNDS, RUNS, STORED

LOOPS = Path(published_loops.__file__).read_text(encoding="utf-8")
# Plays OPB on two arms, and prints its regret.
PLAY = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from published_loops import play_arms
from stagewise.simulation.run import compute_recorded_rounds, empty_trace

trace, means = empty_trace(compute_recorded_rounds(50, 10), 1), np.array([[0.0, 0.9], [0.0, 0.5]])
play_arms(means, np.ones(2), 0, np.array([0.4]), 0.72, trace, np.zeros(16), 0, 0, 50)
print(trace.regret[-1])
"""


def test_the_loops_are_plain_kernels() -> None:
    assert list_faults(LOOPS) == []


@pytest.mark.slow
@pytest.mark.compiled
def test_a_change_in_a_loop_is_seen(tmp_path: Path) -> None:
    """The loops stand outside the package, so their machine code is not kept and cannot be old."""
    regrets = []
    for text in (LOOPS, LOOPS.replace("4.0 * math.log(rounds)", "0.1 * math.log(rounds)")):
        (tmp_path / "published_loops.py").write_text(text, encoding="utf-8")
        code = PLAY.format(folder=str(tmp_path))
        regrets.append(asked(code, STAGEWISE_CACHE=str(tmp_path / "cache"))[0])
    assert regrets[0] != regrets[1]
    assert not list(tmp_path.rglob("*.nbc"))  # neither they nor what is linked into them is kept


def on_ten_rays(kind: str, threshold: float, rounds: int) -> Play:
    """Return how a run of Figure 1 was played."""
    policy = sw.LCLUCB(safe_action=at_zero(10), threshold=threshold, noise=1.0)
    return build_published_play(kind, lambda _: (policy, shifted(10)), rounds)


@pytest.mark.compiled
@pytest.mark.parametrize(("kind", "low", "high"), [("LC-LUCB", 20_000, 30_000), ("Safe-LTS", 20_000, 30_000)])
def test_the_published_settings_are_safe_and_slow_to_start(kind: str, low: float, high: float) -> None:
    """At τ = .2 a tenth of the stored horizon costs a bit more than a tenth of the stored regret."""
    result = on_ten_rays(kind, 0.2, 100_000)(0)
    assert low < result.regret[0, -1] < high
    assert result.violations.sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "threshold"), [(kind, limit) for kind, d, limit in STORED if d == 10 and limit])
def test_the_published_settings_give_the_published_regrets(kind: str, threshold: float) -> None:
    """Those stored in the authors' repository, to three standard errors of the difference."""
    play = on_ten_rays(kind, threshold, ROUNDS)
    total = merge_results([play(run) for run in range(RUNS)])
    assert check_stored(kind, total, STORED[kind, 10, threshold]).verdict == HOLDS
