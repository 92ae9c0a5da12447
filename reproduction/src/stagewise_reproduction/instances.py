"""What several experiments share: sizes, and the settings of the paper's text and of ours."""

from typing import Any

from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.safe_lts import SafeLTS
from stagewise.simulation.judge import judge

DELTA = 0.01
# rounds and runs; smoke only shows that everything works
SIZES = {"smoke": (1_000, 2), "quick": (100_000, 4), "full": (1_000_000, 10)}
TEXT: dict[str, Any] = {"delta": DELTA, "radius": "paper", "cost_bound": None}
OURS: dict[str, Any] = {"delta": DELTA}
KINDS: dict[str, Any] = {"LC-LUCB": LCLUCB, "Safe-LTS": SafeLTS, "ROFUL": ROFUL}


def optimum(policy: Any, world: Any) -> float:
    """Return the best mean reward under the policy's thresholds."""
    return judge(policy, world).best(world.actions)
