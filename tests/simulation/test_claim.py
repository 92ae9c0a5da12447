"""How much of δ the intervals of each signal take: the policy says it, or shows it."""

from types import SimpleNamespace
from typing import Any

import pytest

import stagewise as sw
from stagewise.simulation.certify import get_interval_shares

RAY: dict[str, Any] = {"safe_action": sw.SafeAction(features=[0.0, 0.0]), "threshold": [0.3, 0.4], "noise": 0.1}
ARM: dict[str, Any] = {"arms": 3, "safe_action": sw.SafeAction(arm=0, cost=[0.1, 0.1]), "threshold": [0.3, 0.4]}


class Careful(sw.LCLUCB):
    """Gives the reward next to nothing."""

    @property
    def interval_shares(self) -> tuple[float, ...]:
        return (0.01, 0.02, 0.02)


@pytest.mark.parametrize(
    ("policy", "shares"),
    [
        (sw.LCLUCB(**RAY, delta=0.06), (0.02, 0.02, 0.02)),
        (sw.LCLUCB(**RAY, delta=0.06, split_delta=False), (0.06, 0.06, 0.06)),
        (sw.OPB(**ARM, delta=0.06), (0.02, 0.02, 0.02)),
        (sw.OPB(**ARM, delta=0.06, split_delta=False), (0.03, 0.03, 0.03)),
        (sw.LinUCB(noise=0.1, threshold=[0.3, 0.4], delta=0.06), (0.06, None, None)),
        (sw.AlwaysSafe(safe_action=RAY["safe_action"], threshold=[0.3, 0.4]), (None, None, None)),
        (Careful(**RAY), (0.01, 0.02, 0.02)),
        (SimpleNamespace(), (None, None, None)),
        (SimpleNamespace(delta=0.06), (0.06, None, None)),
        (SimpleNamespace(delta=0.06, split_delta=True), (0.02, 0.02, 0.02)),
        (SimpleNamespace(delta=0.06, split_delta=False), (0.06, 0.06, 0.06)),
        (SimpleNamespace(delta=0.06, split_delta=True, learns="the reward"), (0.06, None, None)),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, tuple) else str(value),
)
def test_every_signal_has_its_share(policy: Any, shares: tuple[float | None, ...]) -> None:
    assert get_interval_shares(policy, 3) == pytest.approx(shares)
