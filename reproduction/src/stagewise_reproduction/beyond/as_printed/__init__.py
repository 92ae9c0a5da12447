"""The paper's algorithms exactly as printed, beside the corrected forms of stagewise."""

from stagewise_reproduction.beyond.as_printed import claims, figure, plan
from stagewise_reproduction.experiment import BANDS, Experiment

EXPERIMENTS = [
    Experiment(
        name="as-printed",
        title="The algorithms as printed",
        words="LC-LUCB with a safe action that is not zero and OPLB: the printed bonus beside ours, with our sets and "
        "with the paper's. Algorithm 5: the printed warm-up and scalings beside certifying in every round. OPNLB: the "
        "printed radius beside likelihood-ratio sets. LC-LUCB on three points without the segments to them, beside "
        f"OPLB, which mixes. {BANDS}",
        errata=(35, 36, 37, 41, 48),
        cells=plan.cells,
        draw=figure.draw,
        check=claims.check,
    )
]
