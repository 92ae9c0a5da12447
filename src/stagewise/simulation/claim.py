"""What a certificate claims: the limits, δ, and which part of it each signal's intervals may fail with."""

from typing import Any

from stagewise.policies.always_safe import AlwaysSafe
from stagewise.policies.opb import OPB
from stagewise.policies.settings import probability
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.certificate import Terms
from stagewise.simulation.judge import judge


def terms_for(policy: Any, world: Any, delta: float | None, confidence: float, backend: str) -> Terms:
    """Return what is claimed; rounds played by hand show no intervals."""
    limits = judge(policy, world).thresholds
    if limits.values.size == 0:
        raise InvalidProblem(f"{type(policy).__name__} has no threshold here, so there is nothing to certify")
    own = float(getattr(policy, "delta", 0.05))
    claimed = probability(own if delta is None else delta, "delta")
    m = limits.values.size
    shares = shares_of(policy, own, m) if backend in ("cpu", "cuda") else (None,) * (1 + m)
    return Terms(claimed, confidence, ("reward", *limits.names), shares)


def shares_of(policy: Any, delta: float, m: int) -> tuple[float | None, ...]:
    """Return how much of δ the intervals of each signal take; None: it has none."""
    if isinstance(policy, AlwaysSafe) or not hasattr(policy, "delta"):
        return (None,) * (1 + m)
    if not hasattr(policy, "share_delta"):  # learners of the reward only
        return (delta, *([None] * m))
    alone = 2 if isinstance(policy, OPB) else 1
    return (delta / (1 + m if policy.share_delta else alone),) * (1 + m)


def thresholds_of(policy: Any, world: Any) -> list[dict[str, Any]]:
    """Return the limits as people wrote them."""
    limits = judge(policy, world).thresholds
    words = ["at most" if sign > 0 else "at least" for sign in limits.signs.tolist()]
    rows = zip(limits.names, words, limits.values.tolist(), strict=True)
    return [{"name": name, "side": side, "value": value} for name, side, value in rows]
