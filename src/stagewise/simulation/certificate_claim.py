"""The claim of a certificate, its limits, assumptions and plan."""

from typing import Any

from stagewise.policies.policy import EVERY, NOTHING, REWARD
from stagewise.policies.settings import check_probability
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.reports.assumptions import check_assumptions
from stagewise.reports.evidence import ClaimTerms
from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.plan import describe_policy
from stagewise.simulation.policy_worlds import PolicyWorlds


def build_terms(pairs: PolicyWorlds, delta: float | None, confidence: float, rounds: int, backend: str) -> ClaimTerms:
    """Return the claim about run 0's policy; the python backend has no intervals."""
    policy, world = pairs(0)
    limits = build_oracle(policy, world).thresholds
    signals = 1 + limits.values.size
    if signals == 1:
        raise InvalidProblem(
            ErrorCode.MISSING_VALUE,
            "{name} has no threshold, so there is nothing to certify",
            name=type(policy).__name__,
        )
    claimed = check_probability(getattr(policy, "delta", 0.05) if delta is None else delta, "delta")
    shares = (None,) * signals if backend == "python" else get_interval_shares(policy, signals)
    return ClaimTerms(claimed, confidence, rounds, ("reward", *limits.names), shares)


def get_interval_shares(policy: Any, signals: int) -> tuple[float | None, ...]:
    """Return each signal's share of δ; None if it has no intervals."""
    declared: Any = getattr(policy, "interval_shares", None)  # one of someone's own may not say it
    shares = infer_interval_shares(policy, signals) if declared is None else tuple(declared)
    return (*shares, *([None] * (signals - len(shares))))


def infer_interval_shares(policy: Any, signals: int) -> tuple[float, ...]:
    """Return the shares of a policy of your own from its `delta` and `split_delta`."""
    inferred = EVERY if hasattr(policy, "split_delta") else REWARD if hasattr(policy, "delta") else NOTHING
    learned = getattr(policy, "learns", inferred)
    if learned == NOTHING:
        return ()
    if learned == REWARD:
        return (float(policy.delta),)
    return (float(policy.delta) / (signals if getattr(policy, "split_delta", True) else 1),) * signals


def describe_setting(pairs: PolicyWorlds, plan: dict[str, Any]) -> dict[str, Any]:
    """Return the policy, the world and the plan of a certificate, as run 0 has them."""
    policy, world = pairs(0)
    oracle = build_oracle(policy, world)
    limits = oracle.thresholds
    rows = zip(limits.names, limits.signs.tolist(), limits.values.tolist(), strict=True)
    return {
        "policy": describe_policy(policy),
        "thresholds": [
            {"name": name, "side": "at most" if sign > 0 else "at least", "value": value} for name, sign, value in rows
        ],
        "mixes": oracle.mixes,
        "assumptions": check_assumptions(policy, world),
        "world": pairs.description(),
        "plan": plan,
    }
