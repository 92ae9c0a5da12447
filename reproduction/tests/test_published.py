"""The loops that made the published curves: their regrets, and that a change in them is seen."""

from pathlib import Path

import numpy as np
import pytest
from tests.kernels.processes import asked
from tests.test_kernels_plain import faults

import stagewise as sw
from stagewise_reproduction import published_loops
from stagewise_reproduction.cell import Play
from stagewise_reproduction.instances import at_zero, shifted
from stagewise_reproduction.published import published

LOOPS = Path(published_loops.__file__).read_text(encoding="utf-8")
# Plays OPB on two arms, and prints its regret.
PLAY = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from published_loops import play_arms
from stagewise.simulation.recording import empty_trace, recorded

trace, means = empty_trace(recorded(50, 10), 1), np.array([[0.0, 0.9], [0.0, 0.5]])
play_arms(means, np.ones(2), 0, np.array([0.4]), 0.72, trace, np.zeros(16), 0, 0, 50)
print(trace.regret[-1])
"""


def test_the_loops_are_plain_kernels() -> None:
    assert faults(LOOPS) == []


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
    return published(kind, lambda _: (policy, shifted(10)), rounds)


@pytest.mark.compiled
@pytest.mark.parametrize(("kind", "low", "high"), [("LC-LUCB", 20_000, 30_000), ("Safe-LTS", 20_000, 30_000)])
def test_the_published_settings_are_safe_and_slow_to_start(kind: str, low: float, high: float) -> None:
    """At τ = .2 a tenth of the published horizon costs a bit more than a tenth of the published regret."""
    result = on_ten_rays(kind, 0.2, 100_000)(0)
    assert low < result.regret[0, -1] < high
    assert result.violations.sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "threshold", "published", "room"),
    [
        ("LC-LUCB", 0.2, 226_775, 0.06 * 226_775),
        ("Safe-LTS", 0.2, 233_568, 0.06 * 233_568),
        ("LC-LUCB", 0.5, 144_974, 2 * 8_416),
        ("Safe-LTS", 0.5, 372_915, 0.06 * 372_915),
        ("LC-LUCB", 0.8, 33_380, 2 * 11_294),
        ("Safe-LTS", 0.8, 175_321, 0.06 * 175_321),
    ],
)
def test_the_published_settings_give_the_published_regrets(
    kind: str, threshold: float, published: float, room: float
) -> None:
    play = on_ten_rays(kind, threshold, 1_000_000)
    finals = [play(run).regret[0, -1] for run in range(10)]
    assert abs(np.mean(finals) - published) <= room
