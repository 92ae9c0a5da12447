"""How much of δ each signal's intervals take, as a policy's own answers say (see `policies.learning.Learning`)."""

from typing import Any

from stagewise.policies.learning import EVERY, NOTHING, REWARD

UNTOLD = "it does not say"


def learned_by(policy: Any) -> str:
    """Return what a policy has intervals of; one of someone's own shows it by `delta` and `share_delta`."""
    own = EVERY if hasattr(policy, "share_delta") else REWARD if hasattr(policy, "delta") else UNTOLD
    return str(getattr(policy, "learns", own))


def shares_of(policy: Any, signals: int) -> tuple[float | None, ...]:
    """Return how much of δ the intervals of each signal take; None: it has none."""
    if hasattr(policy, "interval_shares"):
        return tuple(policy.interval_shares)
    learned = learned_by(policy)
    if learned in (NOTHING, UNTOLD):
        return (None,) * signals
    if learned == REWARD:
        return (float(policy.delta), *([None] * (signals - 1)))
    shared = getattr(policy, "share_delta", True)
    return (float(policy.delta) / (signals if shared else getattr(policy, "undivided", 1)),) * signals
