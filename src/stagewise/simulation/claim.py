"""What a certificate says before anything is played: the claim, the limits, what it rests on, the plan."""

from typing import Any

from stagewise.policies.learning import EVERY, NOTHING, REWARD
from stagewise.policies.settings import probability
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.assumptions import assumptions
from stagewise.reports.evidence import Terms
from stagewise.simulation.judge import judge
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.plan import described


def terms_for(pairs: Pairs, delta: float | None, confidence: float, rounds: int, backend: str) -> Terms:
    """Return what is claimed of run 0's policy; rounds played by hand show no intervals."""
    policy, world = pairs(0)
    limits = judge(policy, world).thresholds
    signals = 1 + limits.values.size
    if signals == 1:
        raise InvalidProblem(f"{type(policy).__name__} has no threshold here, so there is nothing to certify")
    claimed = probability(getattr(policy, "delta", 0.05) if delta is None else delta, "delta")
    shares = (None,) * signals if backend == "python" else shares_of(policy, signals)
    return Terms(claimed, confidence, rounds, ("reward", *limits.names), shares)


def shares_of(policy: Any, signals: int) -> tuple[float | None, ...]:
    """Return how much of δ the intervals of each signal take, as the policy says; None: it has none."""
    told: Any = getattr(policy, "interval_shares", None)  # one of someone's own may not say it
    shares = shown_shares(policy, signals) if told is None else tuple(told)
    return (*shares, *([None] * (signals - len(shares))))


def shown_shares(policy: Any, signals: int) -> tuple[float, ...]:
    """Return the same of a policy of someone's own, which shows by `delta` and `share_delta` what it learns."""
    shown = EVERY if hasattr(policy, "share_delta") else REWARD if hasattr(policy, "delta") else NOTHING
    learned = getattr(policy, "learns", shown)
    if learned == NOTHING:
        return ()
    if learned == REWARD:
        return (float(policy.delta),)
    return (float(policy.delta) / (signals if getattr(policy, "share_delta", True) else 1),) * signals


def setting(pairs: Pairs, plan: dict[str, Any]) -> dict[str, Any]:
    """Return what a certificate says of the policy, the world and the plan, as run 0 has them."""
    policy, world = pairs(0)
    arbiter = judge(policy, world)
    limits = arbiter.thresholds
    rows = zip(limits.names, limits.signs.tolist(), limits.values.tolist(), strict=True)
    return {
        "policy": described(policy),
        "thresholds": [
            {"name": name, "side": "at most" if sign > 0 else "at least", "value": value} for name, sign, value in rows
        ],
        "mixes": arbiter.mixes,
        "assumptions": assumptions(policy, world),
        "world": pairs.description(),
        "plan": plan,
    }
