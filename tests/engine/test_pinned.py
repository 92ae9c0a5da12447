"""What a round knows of a layout beforehand is what stands in it."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.layout import build_layout_reader

SAFE: Any = {"safe_action": sw.SafeAction(features=np.zeros(3)), "noise": 0.1}
ARM: Any = {"arms": 3, "safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.5}


@pytest.mark.parametrize(
    "policy",
    [
        sw.LCLUCB(threshold=0.5, **SAFE),
        sw.LCLUCB(threshold=0.5, separate_models=True, **SAFE),
        sw.LCLUCB(threshold=[0.5, 0.5], **SAFE),
        sw.OPLB(threshold=0.5, **SAFE),
        sw.SafePosteriorSampling(threshold=0.5, **SAFE),
        sw.OPB(**ARM),
        sw.OPB(separate_models=True, **ARM),
        sw.LinUCB(noise=0.1),
        sw.KernelOPLB(kernel=sw.RBF(lengthscale=0.5), threshold=0.5, norm_bound=1.0, **SAFE),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_a_pinned_layout_is_the_layout(policy: Any) -> None:
    layout, _ = policy.arrays(3)
    limits, count = layout[:2].tolist()
    pinned = build_layout_reader(count, int(limits == 1))
    assert getattr(pinned, "py_func", pinned)(layout) == tuple(layout.tolist())
