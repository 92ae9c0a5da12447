"""The compiled loops that play the safe action in every round."""

from stagewise.kernels import audit
from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import fill_directions
from stagewise.simulation.stage import Room, Stage, optimum


@kernel
def play_safe(stage: Stage, room: Room, trace: Trace, mixed: bool, seed: int, run: int, first: int, last: int) -> None:
    """Play the safe action."""
    best = stage.best
    for t in range(first, last):
        if stage.fresh:
            fill_directions(stage.features, seed, run, t)
            best = optimum(stage, room, mixed)
        note(trace, t, best, stage.safe_means, stage.thresholds)
        if trace.audit.size > 0:
            audit.watch(trace.audit, t, best, stage.safe_means[0], stage.safe_means, stage.thresholds)


@kernel
def play_safe_arm(trace: Trace, best: float, means: Floats, thresholds: Floats, first: int, last: int) -> None:
    """Play the safe arm, whose true expected reward and costs are known here."""
    for t in range(first, last):
        note(trace, t, best, means, thresholds)
        if trace.audit.size > 0:
            audit.watch(trace.audit, t, best, means[0], means, thresholds)
