"""Source text of the unrolled loop of OPB over a few arms (see unrolled.py)."""

from typing import NamedTuple

from stagewise.engine.random import POLICY
from stagewise.engine.trace import ROUNDING
from stagewise.simulation.gpu.unrolled import list_world_names, write_loop, write_outcome, write_record

MODEL_SCALARS = ["noise_0", "noise_1", "confidence", "width"]
LIMIT_SCALARS = ["start_0", "start_1", "limit", "ceiling", "factor", "cost_confidence_scale"]


class ArmsForm(NamedTuple):
    """What the loop over arms under one limit is generated for."""

    arms: int  # K
    safe: int
    radius: int  # kind (see models/arms.py)
    kind: int  # of the outcomes
    audited: bool


def write_bounds(form: ArmsForm, i: int) -> list[str]:
    """Return the lines for the bounds of an arm and, if audited, their comparison with the truth."""
    lines = [
        f"h_{i} = r_{i} + (noise_0 + factor * noise_1) * w_{i}",
        f"d_{i} = lesser(c_{i} + cost_confidence_scale * noise_1 * w_{i}, ceiling)",
    ]
    for k, mean in enumerate(["r", "c"] if form.audited else []):
        miss = f"abs({mean}_{i} - sign_{k} * truth[{k}, {i}]) > noise_{k} * w_{i} + {ROUNDING}"
        lines.append(f"miss_{k} = miss_{k} or (n_{i} > 0.0 and {miss})")
    return lines


def write_scan(others: list[int]) -> list[str]:
    """Return the lines that find the best arms at a price of the limit: `cheap_` is within it, `costly_` is not.

    −1 is the safe arm, −2 is none.
    """
    lines = [
        "safe_lagrangian = start_0 + price * (limit - start_1)",
        "top = safe_lagrangian",
        *(f"top = larger(top, h_{i} + price * (limit - d_{i}))" for i in others),
        "floor = tie_floor(top)",
        "cheap_, cheap_r, cheap_c = -2, start_0, start_1",
        "costly_, costly_r, costly_c = -2, start_0, start_1",
    ]
    for i in reversed(others):
        lines += [
            f"ties = h_{i} + price * (limit - d_{i}) >= floor",
            f"if ties and d_{i} <= limit:",
            f"    cheap_, cheap_r, cheap_c = {i}, h_{i}, d_{i}",
            f"if ties and d_{i} > limit:",
            f"    costly_, costly_r, costly_c = {i}, h_{i}, d_{i}",
        ]
    return [*lines, "if cheap_ == -2 and not safe_lagrangian < floor:", "    cheap_ = -1"]


def write_search(form: ArmsForm, others: list[int]) -> list[str]:
    """Return the lines that find the best mixture of two arms: engine/pair.py, unrolled."""
    return [
        "price, value, alone = 0.0, -math.inf, False",
        "cheap, kept_cheap, cheap_reward, cheap_cost = -1, -1, start_0, start_1",
        "costly, kept_costly, costly_reward, costly_cost = -2, -2, 0.0, 0.0",
        "kept_cheap_c, kept_cheap_r, kept_costly_c, kept_costly_r = start_1, start_0, start_1, start_0",
        "first = True",
        "while True:",
        *("    " + line for line in write_scan(others)),
        "    if first and cheap_ != -2:",
        "        kept_cheap, kept_cheap_c, kept_cheap_r, alone = cheap_, cheap_c, cheap_r, True",
        "        break",
        "    if not first and cheap_ != -2 and costly_ != -2:",
        "        kept_cheap, kept_cheap_c, kept_cheap_r = cheap_, cheap_c, cheap_r",
        "        kept_costly, kept_costly_c, kept_costly_r = costly_, costly_c, costly_r",
        "        break",
        "    first = False",
        "    if cheap_ != -2:",
        "        cheap, cheap_reward, cheap_cost = cheap_, cheap_r, cheap_c",
        "    if costly_ != -2:",
        "        costly, costly_reward, costly_cost = costly_, costly_r, costly_c",
        "    price = (costly_reward - cheap_reward) / (costly_cost - cheap_cost)",
        "    crossing = cheap_reward + price * (limit - cheap_cost)",
        "    if not crossing > value:",
        "        break",
        "    value = crossing",
        "    kept_cheap, kept_cheap_c, kept_cheap_r = cheap, cheap_cost, cheap_reward",
        "    kept_costly, kept_costly_c, kept_costly_r = costly, costly_cost, costly_reward",
        "share = 0.0 if alone else safe_share(kept_cheap_c, kept_costly_c, limit)",
        "optimistic_reward = kept_cheap_r + share * (kept_costly_r - kept_cheap_r) if share > 0.0 else kept_cheap_r",
        f"low, high = (kept_cheap if kept_cheap >= 0 else {form.safe}), (kept_costly if share > 0.0 else 0)",
        "if not (1.0 - share) * kept_cheap_c + share * kept_costly_c <= threshold_1:",
        f"    low, share, optimistic_reward = {form.safe}, 0.0, start_0",
    ]


def write_update(form: ArmsForm, kept: list[int]) -> list[str]:
    """Return the lines that learn the outcome of the pulled arm."""
    lines = ["n, r, c = 0.0, 0.0, 0.0"]
    for i in kept:
        lines += [f"if arm == {i}:", f"    n, r, c = n_{i}, r_{i}, c_{i}"]
    lines += ["n += 1.0", "r += (outcome_0 - r) / n", "c += (outcome_1 - c) / n"]
    lines.append(f"w = unit_radius({form.radius}, n, confidence)")
    for i in kept:
        lines += [f"if arm == {i}:", f"    n_{i}, r_{i}, c_{i}, w_{i} = n, r, c, w"]
    return lines


def write_source(form: ArmsForm) -> str:
    """Return the source of the loop of OPB under one limit, with a known safe arm and intervals around the means."""
    others = [i for i in range(form.arms) if i != form.safe]
    kept = list(range(form.arms)) if form.audited else others  # an audit needs the safe arm's interval too
    start = [f"{name}_{i} = 0.0" for i in kept for name in ("n", "r", "c")] + [f"w_{i} = width" for i in kept]
    body = [
        "miss_0, miss_1 = False, False",
        *(line for i in kept for line in write_bounds(form, i)),
        *write_search(form, others),
        f"arm = low if not uniform(seed, run, t, {POLICY}, 0) >= 1.0 - share else high",
        *(f"signed_{s} = sign_{s} * ((1.0 - share) * truth[{s}, low] + share * truth[{s}, high])" for s in range(2)),
        *(f"mean_{s} = truth[{s}, arm]" for s in range(2)),
        *write_outcome(2, form.kind),
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in range(2)),
        *write_record(2, True, form.audited),
        *write_update(form, kept),
    ]
    return write_loop(["truth", *MODEL_SCALARS, *LIMIT_SCALARS, *list_world_names(2)], 2, start, body)
