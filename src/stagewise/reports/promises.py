"""What each policy promises: the answers that judges, certificates and theorems need, in one table."""

from typing import Any, NamedTuple

from stagewise.policies.always_safe import AlwaysSafe
from stagewise.policies.doslb import DOSLB
from stagewise.policies.kernel_oplb import KernelOPLB
from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.linucb import LinUCB
from stagewise.policies.opb import OPB
from stagewise.policies.oplb import OPLB
from stagewise.policies.opnlb import OPNLB
from stagewise.policies.safe_lts import SafeLTS
from stagewise.policies.ucb import UCB

EVERY, REWARD, NOTHING, UNTOLD = "every signal", "the reward", "nothing", "it does not say"


class Promise(NamedTuple):
    """The answers of one policy."""

    mixes: bool = False  # its limits hold for mixtures, and regret is against the best one
    learns: str = EVERY  # what it has intervals of
    undivided: int = 1  # δ is divided by this where `share_delta` is False
    theorem: str = ""  # which bounds its regret with explicit constants: "rays", "mixtures" or "arms"


PROMISES: dict[type, Promise] = {  # a subclass, such as ROFUL of LCLUCB, promises the same unless it stands here
    LCLUCB: Promise(theorem="rays"),
    DOSLB: Promise(),
    SafeLTS: Promise(),
    OPLB: Promise(mixes=True, theorem="mixtures"),
    OPNLB: Promise(mixes=True),
    KernelOPLB: Promise(),
    OPB: Promise(undivided=2, theorem="arms"),
    LinUCB: Promise(learns=REWARD),
    UCB: Promise(learns=REWARD),
    AlwaysSafe: Promise(learns=NOTHING),
}


def promise_of(policy: Any) -> Promise:
    """Return a policy's answers; one of someone's own is asked for `mixes`, `delta` and `share_delta`."""
    kind = next((kind for kind in type(policy).__mro__ if kind in PROMISES), None)
    own = EVERY if hasattr(policy, "share_delta") else REWARD if hasattr(policy, "delta") else UNTOLD
    found = Promise(learns=own) if kind is None else PROMISES[kind]
    return found._replace(mixes=bool(getattr(policy, "mixes", found.mixes)))


def shares_of(policy: Any, signals: int) -> tuple[float | None, ...]:
    """Return how much of δ the intervals of each signal take; None: it has none."""
    promise = promise_of(policy)
    if promise.learns in (NOTHING, UNTOLD):
        return (None,) * signals
    if promise.learns == REWARD:
        return (float(policy.delta), *([None] * (signals - 1)))
    shared = getattr(policy, "share_delta", True)
    return (float(policy.delta) / (signals if shared else promise.undivided),) * signals
