"""What a certificate says before anything is played: the claim, the limits, what it rests on, the plan."""

from typing import Any

from stagewise.kernels.compile import Ints
from stagewise.policies.settings import probability
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.assumptions import assumptions
from stagewise.reports.evidence import Terms
from stagewise.reports.promises import shares_of
from stagewise.reports.regret_bound import regret_bound
from stagewise.simulation.judge import judge
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.plan import described


def terms_for(policy: Any, world: Any, delta: float | None, confidence: float, backend: str) -> Terms:
    """Return what is claimed; rounds played by hand show no intervals."""
    limits = judge(policy, world).thresholds
    signals = 1 + limits.values.size
    if signals == 1:
        raise InvalidProblem(f"{type(policy).__name__} has no threshold here, so there is nothing to certify")
    claimed = probability(getattr(policy, "delta", 0.05) if delta is None else delta, "delta")
    shares = (None,) * signals if backend == "python" else shares_of(policy, signals)
    return Terms(claimed, confidence, ("reward", *limits.names), shares)


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


def theorem(pairs: Pairs, ends: Ints) -> dict[str, Any]:
    """Return which theorem bounds the regret, and with what probability it may fail; or why there is none."""
    bound = regret_bound(*pairs(0), ends)
    found, fails = (bound, None) if isinstance(bound, str) else (bound.theorem, bound.failure)
    return {"theorem": found, "failure": fails}
