"""The loop of OPB over a few arms, written out (see unrolled.py)."""

from typing import NamedTuple

from stagewise.kernels.audit import ROUNDING
from stagewise.kernels.draw import POLICY
from stagewise.simulation.gpu.unrolled import loop, noting, seeing, world_names

DECLARED = ["noise_0", "noise_1", "confidence", "width"]
PROMISED = ["start_0", "start_1", "limit", "ceiling", "factor", "cost_scale"]


class ArmsForm(NamedTuple):
    """What the loop over arms under one limit is written for."""

    arms: int  # K
    safe: int
    radius: int  # which (see kernels/signals/arms.py)
    kind: int  # of the outcomes
    audited: bool


def look(form: ArmsForm, i: int) -> list[str]:
    """Return the lines for what an arm may be worth and may cost, compared with the truth where that is asked for."""
    lines = [
        f"h_{i} = r_{i} + (noise_0 + factor * noise_1) * w_{i}",
        f"d_{i} = lesser(c_{i} + cost_scale * noise_1 * w_{i}, ceiling)",
    ]
    for k, mean in enumerate(["r", "c"] if form.audited else []):
        missed = f"abs({mean}_{i} - sign_{k} * truth[{k}, {i}]) > noise_{k} * w_{i} + {ROUNDING}"
        lines.append(f"miss_{k} = miss_{k} or (n_{i} > 0.0 and {missed})")
    return lines


def scan(others: list[int]) -> list[str]:
    """Return the lines that find the best arms at a price of the limit: `cheap_` keeps it, `dear_` does not.

    −1 is the safe arm, −2 is none.
    """
    lines = [
        "safe_worth = start_0 + price * (limit - start_1)",
        "top = safe_worth",
        *(f"top = larger(top, h_{i} + price * (limit - d_{i}))" for i in others),
        "floor = tie_floor(top)",
        "cheap_, cheap_r, cheap_c = -2, start_0, start_1",
        "dear_, dear_r, dear_c = -2, start_0, start_1",
    ]
    for i in reversed(others):
        lines += [
            f"ties = h_{i} + price * (limit - d_{i}) >= floor",
            f"if ties and d_{i} <= limit:",
            f"    cheap_, cheap_r, cheap_c = {i}, h_{i}, d_{i}",
            f"if ties and d_{i} > limit:",
            f"    dear_, dear_r, dear_c = {i}, h_{i}, d_{i}",
        ]
    return [*lines, "if cheap_ == -2 and not safe_worth < floor:", "    cheap_ = -1"]


def search(form: ArmsForm, others: list[int]) -> list[str]:
    """Return the lines that solve for the mixture of two arms: kernels/rules/pair.py with the arms written out."""
    return [
        "price, value, alone = 0.0, -math.inf, False",
        "cheap, kept_cheap, cheap_reward, cheap_cost = -1, -1, start_0, start_1",
        "dear, kept_dear, dear_reward, dear_cost = -2, -2, 0.0, 0.0",
        "kept_cheap_c, kept_cheap_r, kept_dear_c, kept_dear_r = start_1, start_0, start_1, start_0",
        "first = True",
        "while True:",
        *("    " + line for line in scan(others)),
        "    if first and cheap_ != -2:",
        "        kept_cheap, kept_cheap_c, kept_cheap_r, alone = cheap_, cheap_c, cheap_r, True",
        "        break",
        "    if not first and cheap_ != -2 and dear_ != -2:",
        "        kept_cheap, kept_cheap_c, kept_cheap_r = cheap_, cheap_c, cheap_r",
        "        kept_dear, kept_dear_c, kept_dear_r = dear_, dear_c, dear_r",
        "        break",
        "    first = False",
        "    if cheap_ != -2:",
        "        cheap, cheap_reward, cheap_cost = cheap_, cheap_r, cheap_c",
        "    if dear_ != -2:",
        "        dear, dear_reward, dear_cost = dear_, dear_r, dear_c",
        "    price = (dear_reward - cheap_reward) / (dear_cost - cheap_cost)",
        "    crossing = cheap_reward + price * (limit - cheap_cost)",
        "    if not crossing > value:",
        "        break",
        "    value = crossing",
        "    kept_cheap, kept_cheap_c, kept_cheap_r = cheap, cheap_cost, cheap_reward",
        "    kept_dear, kept_dear_c, kept_dear_r = dear, dear_cost, dear_reward",
        "share = 0.0 if alone else safe_share(kept_cheap_c, kept_dear_c, limit)",
        "hoped = kept_cheap_r + share * (kept_dear_r - kept_cheap_r) if share > 0.0 else kept_cheap_r",
        f"low, high = (kept_cheap if kept_cheap >= 0 else {form.safe}), (kept_dear if share > 0.0 else 0)",
        "if not (1.0 - share) * kept_cheap_c + share * kept_dear_c <= threshold_1:",
        f"    low, share, hoped = {form.safe}, 0.0, start_0",
    ]


def learn(form: ArmsForm, kept: list[int]) -> list[str]:
    """Return the lines that take in what was seen of the pulled arm."""
    lines = ["n, r, c = 0.0, 0.0, 0.0"]
    for i in kept:
        lines += [f"if arm == {i}:", f"    n, r, c = n_{i}, r_{i}, c_{i}"]
    lines += ["n += 1.0", "r += (seen_0 - r) / n", "c += (seen_1 - c) / n"]
    lines.append(f"w = unit_radius({form.radius}, n, confidence)")
    for i in kept:
        lines += [f"if arm == {i}:", f"    n_{i}, r_{i}, c_{i}, w_{i} = n, r, c, w"]
    return lines


def written(form: ArmsForm) -> str:
    """Return the loop of OPB under one limit, with a known safe arm and intervals around the means."""
    others = [i for i in range(form.arms) if i != form.safe]
    kept = list(range(form.arms)) if form.audited else others  # an audit asks for the safe arm's interval, too
    begin = [f"{name}_{i} = 0.0" for i in kept for name in ("n", "r", "c")] + [f"w_{i} = width" for i in kept]
    body = [
        "miss_0, miss_1 = False, False",
        *(line for i in kept for line in look(form, i)),
        *search(form, others),
        f"arm = low if not uniform(seed, run, t, {POLICY}, 0) >= 1.0 - share else high",
        *(f"signed_{s} = sign_{s} * ((1.0 - share) * truth[{s}, low] + share * truth[{s}, high])" for s in range(2)),
        *(f"mean_{s} = truth[{s}, arm]" for s in range(2)),
        *seeing(2, form.kind),
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in range(2)),
        *noting(2, True, form.audited),
        *learn(form, kept),
    ]
    return loop(["truth", *DECLARED, *PROMISED, *world_names(2)], 2, begin, body)
