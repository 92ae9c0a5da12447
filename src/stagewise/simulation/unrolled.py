"""Source text of GPU loops in which every number of a run is a variable of its own, so that they stay in registers.

An array that a thread indexes lies in memory; a variable does not. With ten rays a run is 55 entries of a symmetric
matrix and 20 estimates, and a round then touches no memory at all (benchmarks/README.md has the comparison). The
formulas are those of kernels/ray.py, mixture.py and counts.py with loops written out; radii, draws, steps and ties are
called from there.
"""

from collections.abc import Iterable
from typing import NamedTuple

from stagewise.kernels.audit import NEARLY, ROUNDING
from stagewise.kernels.draw import OUTCOME, POLICY
from stagewise.kernels.world import CLIPPED, GAUSSIAN

TRACE = "regret, reward, cost, bests, largest, running, audit"


class Rays(NamedTuple):
    """What the loop over fixed rays is written for."""

    rays: int  # M
    costs: int  # m: the policy's constraints
    signals: int  # 1 + the world's costs
    origin: bool  # nothing is known of the rays but their learned part
    directional: bool
    offers_safe: bool
    kind: int  # of the noise
    judged: bool  # there are thresholds to break
    audited: bool  # keep count of what the theorems promise, too


class Arms(NamedTuple):
    """What the loop over arms under one limit is written for."""

    arms: int  # K
    safe: int
    kind: int  # of the outcomes
    audited: bool


def indented(lines: Iterable[str], depth: int) -> str:
    """Return lines at a depth of four spaces each."""
    return "\n".join("    " * depth + line for line in lines)


def pair(i: int, j: int) -> str:
    """Return the name of an entry of the symmetric matrix."""
    return f"g_{min(i, j)}_{max(i, j)}"


def noting(signals: int, judged: bool, audited: bool, mean: str) -> list[str]:
    """Return the lines that take down a round: `mean` names the true expected signals, signed."""
    costs = range(1, signals)
    broken = " or ".join(f"{mean}{s} > threshold_{s}" for s in costs) if judged else "False"
    return [
        f"total += best - {mean}0",
        f"sum_0 += {mean}0",
        *(f"sum_{s} += {mean}{s}" for s in costs),
        *(f"top_{s} = max(top_{s}, {mean}{s})" for s in costs),
        f"broken = {broken}",
        "violations += 1 if broken else 0",
        *(auditing(mean) if audited else []),
        "if t + 1 == end:",
        "    length = float(end - begun)",
        "    regret[place, interval] = total",
        "    bests[place, interval] = best",
        "    reward[place, interval] = sum_0 / length",
        *(f"    cost[place, interval, {s - 1}] = sum_{s} / length" for s in costs),
        *(f"    sum_{s} = 0.0" for s in range(signals)),
        "    begun = end",
        "    interval += 1",
        "    end = ends[interval] if interval < ends.size else 0",
    ]


def auditing(mean: str) -> list[str]:
    """Return the lines that keep the first violation, hopes below the optimum, and when most of it was reached."""
    return [
        "first_violation = t + 1 if broken and first_violation == 0 else first_violation",
        f"hopeless += 1 if hoped < best - {ROUNDING} else 0",
        f"gained = best > safe_0 and {mean}0 - safe_0 >= {NEARLY} * (best - safe_0)",
        "settled = t + 1 if settled == 0 and gained else settled",
    ]


def opening(signals: int) -> list[str]:
    """Return the lines that begin a run's record."""
    return [
        "run = runs[place]",
        "total = 0.0",
        *(f"sum_{s} = 0.0" for s in range(signals)),
        *(f"top_{s} = -math.inf" for s in range(1, signals)),
        "violations = 0",
        "first_violation = 0",
        "hopeless = 0",
        "settled = 0",
        *(f"missed_{s} = 0" for s in range(signals)),
        "interval = 0",
        "begun = 0",
        "end = ends[0]",
    ]


def closing(signals: int) -> list[str]:
    """Return the lines that end it."""
    return [
        "running[place, 1] = total",
        "running[place, 2] = violations",
        *(f"largest[place, {s - 1}] = top_{s}" for s in range(1, signals)),
        "audit[place, 0] = first_violation",
        "audit[place, 1] = hopeless",
        "audit[place, 2] = settled",
        *(f"audit[place, {3 + s}] = missed_{s}" for s in range(signals)),
    ]


def seeing(signals: int, kind: int) -> list[str]:
    """Return the lines that draw what is seen of the unsigned means `mean_s`, signed, as `seen_s`."""
    normal, lines = kind in (GAUSSIAN, CLIPPED), []
    for first in range(0, signals, 2):
        lines.append(f"one, other = {'normal' if normal else 'uniform'}_pair(seed, run, t, {OUTCOME}, {first // 2})")
        for s, draw in zip(range(first, min(first + 2, signals)), ("one", "other"), strict=False):
            drawn = f"{draw}, 0.0" if normal else f"0.0, {draw}"
            lines.append(f"seen_{s} = sign_{s} * noisy({kind}, mean_{s}, scale_{s}, {drawn})")
    return lines


def world_names(signals: int) -> list[str]:
    """Return the scalars that describe the truth."""
    each = [[f"scale_{s}", f"sign_{s}", f"safe_{s}"] for s in range(signals)]
    return [*(name for names in each for name in names), *(f"threshold_{s}" for s in range(1, signals)), "best"]


def ray_names(form: Rays) -> list[str]:
    """Return the scalars of a policy on rays."""
    each = [[f"noise_{k}", f"bound_{k}", f"confidence_{k}", f"start_{k}"] for k in range(1 + form.costs)]
    limits = [[f"slack_{j}", f"ceiling_{j}", f"factor_{j}"] for j in range(1, 1 + form.costs)]
    return [*(name for names in [*each, *limits] for name in names), "cost_scale", "ridge", "length_squared"]


def rays(form: Rays) -> str:
    """Return the loop over fixed rays whose safe action is known."""
    count, signals = form.rays, 1 + form.costs
    every, triangle = range(count), [(i, j) for i in range(count) for j in range(i, count)]
    known = "" if form.origin else "known[{k}, {i}] + "

    def estimate(k: int, i: int) -> str:
        return known.format(k=k, i=i) + f"e_{k}_{i}"

    look = []
    for i in every:
        look += [f"w = math.sqrt(max({pair(i, i)}, 0.0))", f"s_{i} = 1.0"]
        look += [f"p_{i} = 1.0"] if form.directional else []
        for j in range(1, signals):
            dear = f"min({estimate(j, i)} + reach_{j} * w, ceiling_{j}) - start_{j}"
            look.append(f"s_{i} = min(s_{i}, safe_step({dear}, slack_{j}))")
            if form.directional:
                look.append(f"p_{i} = min(p_{i}, safe_step({estimate(j, i)} - reach_{j} * w - start_{j}, slack_{j}))")
        look.append(f"h_{i} = start_0 + {'p' if form.directional else 's'}_{i} * "
                    f"({estimate(0, i)} + (beta_0 + lift) * w - start_0)")  # fmt: skip
        if form.audited:
            look += [
                f"miss_{k} = miss_{k} or abs({estimate(k, i)} - sign_{k} * truth[{k}, {i}]) > beta_{k} * w + {ROUNDING}"
                for k in range(signals)
            ]
    step = "min(s_{i}, p_{i})" if form.directional else "s_{i}"
    choose = ["top = h_0", *(f"top = max(top, h_{i})" for i in every[1:]), "floor = tie_floor(top)"]
    choose += ["ray = -1", "step = 0.0", "hoped = top"]
    for i in reversed(every):
        choose += [f"if h_{i} >= floor:", f"    ray = {i}", f"    step = {step.format(i=i)}", f"    hoped = h_{i}"]
    if form.offers_safe:
        choose += ["if tie_floor(start_0) > hoped:", "    ray = -1", "    step = 0.0", "    hoped = start_0"]
    take = ["place_ = max(ray, 0)"]
    for i in every:
        take.append(f"q_{i} = {pair(i, 0)}")
        take += [f"q_{i} = {pair(i, k)} if place_ == {k} else q_{i}" for k in every[1:]]
    for k in range(signals):
        take.append(f"a_{k} = e_{k}_0")
        take += [f"a_{k} = e_{k}_{i} if place_ == {i} else a_{k}" for i in every[1:]]
    own = ["own = q_0", *(f"own = q_{i} if place_ == {i} else own" for i in every[1:])]
    world = [f"mean_{s} = sign_{s} * safe_{s} + step * (truth[{s}, place_] - sign_{s} * safe_{s})"
             for s in range(form.signals)]  # fmt: skip
    learn = ["spread = 1.0 + step * step * own", "log_det += math.log(spread)", "shrink = step / spread"]
    for k in range(signals):
        part = f"start_{k}" if form.origin else f"(start_{k} + step * (known[{k}, place_] - start_{k}))"
        learn.append(f"v = shrink * (seen_{k} - {part} - step * a_{k})")
        learn += [f"e_{k}_{i} += v * q_{i}" for i in every]
    learn.append("shrink *= step")
    for i in every:
        learn.append(f"u = shrink * q_{i}")
        learn += [f"{pair(i, j)} -= u * q_{j}" for j in range(i, count)]
    radii = []
    for k in range(signals):
        radii.append(f"beta_{k} = radius(noise_{k}, bound_{k}, ridge, confidence_{k}, log_det, t, length_squared)")
    radii += [f"reach_{j} = cost_scale * beta_{j}" for j in range(1, signals)]
    radii += ["lift = 0.0", *(f"lift = max(lift, factor_{j} * beta_{j})" for j in range(1, signals))]
    radii += [f"miss_{k} = False" for k in range(signals)]
    signed = [f"signed_{s} = sign_{s} * mean_{s}" for s in range(form.signals)]
    begin = [f"{pair(i, j)} = gram[{i}, {j}]" for i, j in triangle]
    begin += [f"e_{k}_{i} = 0.0" for k in range(signals) for i in every]
    body = [
        *radii, *look, *choose, *take, *own, *world, *seeing(form.signals, form.kind), *signed,
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in range(signals)),
        *noting(form.signals, form.judged, form.audited, "signed_"), *learn,
    ]  # fmt: skip
    names = ", ".join([*ray_names(form), *world_names(form.signals)])
    return f"""def play(gram, known, truth, {names}, ends, runs, seed, rounds, {TRACE}):
    place = cuda.grid(1)
    if place < runs.size:
{indented([*opening(form.signals), "log_det = 0.0", *begin], 2)}
        for t in range(rounds):
{indented(body, 3)}
{indented(closing(form.signals), 2)}
"""


def arm_names() -> list[str]:
    """Return the scalars of OPB under one limit."""
    policy = ["noise_0", "noise_1", "confidence", "width", "start_0", "start_1", "limit", "ceiling", "factor"]
    return [*policy, "cost_scale"]


def arms(form: Arms) -> str:
    """Return the loop of OPB under one limit, with a known safe arm and intervals around the means."""
    others = [i for i in range(form.arms) if i != form.safe]
    begin = [f"{name}_{i} = 0.0" for i in others for name in ("n", "r", "c")] + [f"w_{i} = width" for i in others]
    look = []
    for i in others:
        look += [
            f"h_{i} = r_{i} + (noise_0 + factor * noise_1) * w_{i}",
            f"d_{i} = min(c_{i} + cost_scale * noise_1 * w_{i}, ceiling)",
        ]
        for k, mean in enumerate(["r", "c"] if form.audited else []):
            missed = f"abs({mean}_{i} - sign_{k} * truth[{k}, {i}]) > noise_{k} * w_{i} + {ROUNDING}"
            look.append(f"miss_{k} = miss_{k} or (n_{i} > 0.0 and {missed})")
    scan = ["safe_worth = start_0 + price * (limit - start_1)", "top = safe_worth"]
    scan += [f"top = max(top, h_{i} + price * (limit - d_{i}))" for i in others]
    scan += ["floor = tie_floor(top)", "cheap_ = -2", "dear_ = -2", "cheap_r = start_0", "cheap_c = start_1"]
    scan += ["dear_r = start_0", "dear_c = start_1"]
    for i in reversed(others):
        scan += [
            f"ties = h_{i} + price * (limit - d_{i}) >= floor",
            f"if ties and d_{i} <= limit:",
            f"    cheap_ = {i}", f"    cheap_r = h_{i}", f"    cheap_c = d_{i}",
            f"if ties and d_{i} > limit:",
            f"    dear_ = {i}", f"    dear_r = h_{i}", f"    dear_c = d_{i}",
        ]  # fmt: skip
    scan += ["if cheap_ == -2 and not safe_worth < floor:", "    cheap_ = -1"]
    search = [
        "price, value, alone = 0.0, -math.inf, False",
        "cheap, kept_cheap, cheap_reward, cheap_cost = -1, -1, start_0, start_1",
        "dear, kept_dear, dear_reward, dear_cost = -2, -2, 0.0, 0.0",
        "kept_cheap_c, kept_cheap_r, kept_dear_c, kept_dear_r = start_1, start_0, start_1, start_0",
        "first = True",
        "while True:",
        *("    " + line for line in scan),
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
        f"arm = low if not uniform(seed, run, t, {POLICY}, 0) >= 1.0 - share else high",
    ]  # fmt: skip
    world = [
        f"signed_{s} = sign_{s} * ((1.0 - share) * truth[{s}, low] + share * truth[{s}, high])" for s in range(2)
    ] + [f"mean_{s} = truth[{s}, arm]" for s in range(2)]
    learn = ["n, r, c = 0.0, 0.0, 0.0"]
    for i in others:
        learn += [f"if arm == {i}:", f"    n, r, c = n_{i}, r_{i}, c_{i}"]
    learn += [
        "n += 1.0",
        "r += (seen_0 - r) / n",
        "c += (seen_1 - c) / n",
        "w = unit_radius(radius_kind, n, confidence)",
    ]
    for i in others:
        learn += [f"if arm == {i}:", f"    n_{i}, r_{i}, c_{i}, w_{i} = n, r, c, w"]
    body = [
        "miss_0 = False", "miss_1 = False", *look, *search, *world, *seeing(2, form.kind),
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in range(2)),
        *noting(2, True, form.audited, "signed_"), *learn,
    ]  # fmt: skip
    names = ", ".join([*arm_names(), *world_names(2)])
    return f"""def play(truth, {names}, radius_kind, ends, runs, seed, rounds, {TRACE}):
    place = cuda.grid(1)
    if place < runs.size:
{indented([*opening(2), *begin], 2)}
        for t in range(rounds):
{indented(body, 3)}
{indented(closing(2), 2)}
"""
