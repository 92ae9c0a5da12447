"""Source text of unrolled GPU loops, in which every number of a run is a local variable that stays in a register.

An array that a thread indexes is in memory; a local variable is not. With ten rays a run has 55 entries of a symmetric
matrix and 20 estimates, and a round then accesses no memory at all (benchmarks/README.md has the comparison). The
formulas are those of the kernels with their loops unrolled; radii, draws, exact steps, ties and shares are called from
the kernels, and the arithmetic that ranks candidates from lockstep.py. This module has the lines that the loops over
rays and over arms share.

The loop of OPB over a few arms, and the loop over fixed rays: LC-LUCB, ROFUL, LinUCB from a known safe action.

With G = Z V⁻¹ Zᵀ of the rays' ends, ŷ = Z θ̂ and the chosen ray a at step s (docs/decisions/0009):

    ‖zᵢ‖_{V⁻¹} = √Gᵢᵢ,   G ← G − s² G·a Gᵀ·a / (1 + s² Gaa),   ŷ ← ŷ + s (y − s ŷa) G·a / (1 + s² Gaa)
"""

from textwrap import indent
from typing import NamedTuple

from stagewise.engine.loop import (
    FIRST_NEAR_OPTIMAL_ROUND,
    FIRST_VIOLATION,
    INTERVAL_MISSES,
    NEAR_OPTIMAL_SHARE,
    OPTIMISM_FAILURES,
    REGRET,
    ROUNDING,
    VIOLATIONS,
)
from stagewise.engine.random import OUTCOME, POLICY
from stagewise.engine.world_draws import CLIPPED, GAUSSIAN

TRACE = "regret, reward, cost, bests, largest, running, audit"
RECORD_INDICES = {  # indices in a record, by their names in the source text
    "REGRET": REGRET,
    "VIOLATIONS": VIOLATIONS,
    "FIRST_VIOLATION": FIRST_VIOLATION,
    "OPTIMISM_FAILURES": OPTIMISM_FAILURES,
    "FIRST_NEAR_OPTIMAL_ROUND": FIRST_NEAR_OPTIMAL_ROUND,
    "INTERVAL_MISSES": INTERVAL_MISSES,
}
AUDITING = (  # the first violation, optimism failures, and the first near-optimal round
    "first_violation = t + 1 if violated and first_violation == 0 else first_violation",
    f"optimism_failures += 1 if optimistic_reward < best - {ROUNDING} else 0",
    f"near_optimal = best > safe_0 and signed_0 - safe_0 >= {NEAR_OPTIMAL_SHARE} * (best - safe_0)",
    "near_optimal_round = t + 1 if near_optimal_round == 0 and near_optimal else near_optimal_round",
)


def write_record(signals: int, judged: bool, audited: bool) -> list[str]:
    """Return the lines that record a round, whose true expected signals are `signed_s`."""
    costs = range(1, signals)
    violated = " or ".join(f"signed_{s} > threshold_{s}" for s in costs) if judged else "False"
    return [
        "total += best - signed_0",
        *(f"sum_{s} += signed_{s}" for s in range(signals)),
        *(f"top_{s} = larger(top_{s}, signed_{s})" for s in costs),
        f"violated = {violated}",
        "violations += 1 if violated else 0",
        *(AUDITING if audited else ()),
        "if t + 1 == end:",
        "    length = float(end - interval_start)",
        "    regret[index, interval] = total",
        "    bests[index, interval] = best",
        "    reward[index, interval] = sum_0 / length",
        *(f"    cost[index, interval, {s - 1}] = sum_{s} / length" for s in costs),
        *(f"    sum_{s} = 0.0" for s in range(signals)),
        "    interval_start = end",
        "    interval += 1",
        "    end = ends[interval] if interval < ends.size else 0",
    ]


def write_outcome(signals: int, kind: int) -> list[str]:
    """Return the lines that draw outcomes with the unsigned means `mean_s`, signed, as `outcome_s`."""
    normal, lines = kind in (GAUSSIAN, CLIPPED), []
    for first in range(0, signals, 2):
        lines.append(f"one, other = uniform_pair(seed, run, t, {OUTCOME}, {first // 2})")
        lines += ["one, other = normals(one, other, tables)"] if normal else []
        for s, draw in zip(range(first, min(first + 2, signals)), ("one", "other"), strict=False):
            draws = f"{draw}, 0.0" if normal else f"0.0, {draw}"
            lines.append(f"outcome_{s} = sign_{s} * noisy({kind}, mean_{s}, scale_{s}, {draws})")
    return lines


def list_world_names(signals: int) -> list[str]:
    each = [[f"scale_{s}", f"sign_{s}", f"safe_{s}"] for s in range(signals)]
    return [*(name for names in each for name in names), *(f"threshold_{s}" for s in range(1, signals)), "best"]


def write_loop(arguments: list[str], signals: int, start: list[str], body: list[str]) -> str:
    """Return the source of a loop: arguments, start of a run and its record, a round, end of the record."""
    costs = range(1, signals)
    return f"""def play({", ".join(arguments)}, tables, ends, runs, seed, rounds, {TRACE}):
    index = cuda.grid(1)
    if index < runs.size:
        run = runs[index]
        total = 0.0
{indent_lines([*(f"sum_{s} = 0.0" for s in range(signals)), *(f"top_{s} = -math.inf" for s in costs)], 2)}
        violations = 0
        first_violation = 0
        optimism_failures = 0
        near_optimal_round = 0
{indent_lines([f"missed_{s} = 0" for s in range(signals)], 2)}
        interval = 0
        interval_start = 0
        end = ends[0]
{indent_lines(start, 2)}
        for t in range(rounds):
{indent_lines(body, 3)}
        running[index, REGRET] = total
        running[index, VIOLATIONS] = violations
{indent_lines([f"largest[index, {s - 1}] = top_{s}" for s in costs], 2)}
        audit[index, FIRST_VIOLATION] = first_violation
        audit[index, OPTIMISM_FAILURES] = optimism_failures
        audit[index, FIRST_NEAR_OPTIMAL_ROUND] = near_optimal_round
{indent_lines([f"audit[index, INTERVAL_MISSES + {s}] = missed_{s}" for s in range(signals)], 2)}
"""


def indent_lines(lines: list[str], depth: int) -> str:
    """Return lines at a depth of four spaces each."""
    return indent("\n".join(lines), "    " * depth)


MODEL_SCALARS = ["noise_0", "noise_1", "confidence", "width"]
LIMIT_SCALARS = ["start_0", "start_1", "limit", "ceiling", "factor", "cost_confidence_scale"]


class ArmsForm(NamedTuple):
    """What the loop over arms under one limit is generated for."""

    arms: int  # K
    safe: int
    radius: int  # kind (see models/arms.py)
    kind: int  # of the outcomes
    audited: bool


def write_arms_bounds(form: ArmsForm, i: int) -> list[str]:
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


def write_arms_update(form: ArmsForm, kept: list[int]) -> list[str]:
    """Return the lines that learn the outcome of the pulled arm."""
    lines = ["n, r, c = 0.0, 0.0, 0.0"]
    for i in kept:
        lines += [f"if arm == {i}:", f"    n, r, c = n_{i}, r_{i}, c_{i}"]
    lines += ["n += 1.0", "r += (outcome_0 - r) / n", "c += (outcome_1 - c) / n"]
    lines.append(f"w = unit_radius({form.radius}, n, confidence)")
    for i in kept:
        lines += [f"if arm == {i}:", f"    n_{i}, r_{i}, c_{i}, w_{i} = n, r, c, w"]
    return lines


def write_arms_source(form: ArmsForm) -> str:
    """Return the source of the loop of OPB under one limit, with a known safe arm and intervals around the means."""
    others = [i for i in range(form.arms) if i != form.safe]
    kept = list(range(form.arms)) if form.audited else others  # an audit needs the safe arm's interval too
    start = [f"{name}_{i} = 0.0" for i in kept for name in ("n", "r", "c")] + [f"w_{i} = width" for i in kept]
    body = [
        "miss_0, miss_1 = False, False",
        *(line for i in kept for line in write_arms_bounds(form, i)),
        *write_search(form, others),
        f"arm = low if not uniform(seed, run, t, {POLICY}, 0) >= 1.0 - share else high",
        *(f"signed_{s} = sign_{s} * ((1.0 - share) * truth[{s}, low] + share * truth[{s}, high])" for s in range(2)),
        *(f"mean_{s} = truth[{s}, arm]" for s in range(2)),
        *write_outcome(2, form.kind),
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in range(2)),
        *write_record(2, True, form.audited),
        *write_arms_update(form, kept),
    ]
    return write_loop(["truth", *MODEL_SCALARS, *LIMIT_SCALARS, *list_world_names(2)], 2, start, body)


class RaysForm(NamedTuple):
    """What the loop over fixed rays is generated for."""

    rays: int  # M
    costs: int  # m: the policy's constraints
    signals: int  # 1 + the world's costs
    origin: bool  # the safe action is 0, so that estimates have no known part
    directional: bool
    offers_safe: bool
    radius: int  # kind (see models/regression.py)
    size: int  # n: learned coordinates
    kind: int  # of the noise
    judged: bool  # there are thresholds
    audited: bool  # keep an audit


def format_entry(i: int, j: int) -> str:
    """Return the name of an entry of the symmetric matrix."""
    return f"g_{min(i, j)}_{max(i, j)}"


def list_scalar_names(form: RaysForm) -> list[str]:
    each = [[f"noise_{k}", f"bound_{k}", f"confidence_{k}", f"start_{k}"] for k in range(1 + form.costs)]
    limits = [[f"slack_{j}", f"ceiling_{j}", f"factor_{j}"] for j in range(1, 1 + form.costs)]
    return [*(name for names in [*each, *limits] for name in names), "cost_confidence_scale", "ridge", "length_squared"]


def write_estimate(form: RaysForm, k: int, i: int | str) -> str:
    """Return the estimate of a signal at a ray's end: the known part and the learned one; "ray" is the chosen one."""
    learned = f"a_{k}" if i == "ray" else f"e_{k}_{i}"
    return learned if form.origin else f"known[{k}, {i}] + {learned}"


def write_pessimistic_cost(form: RaysForm, j: int, i: int | str) -> str:
    """Return the pessimistic cost of a ray's end less the start's."""
    return f"lesser({write_estimate(form, j, i)} + cost_radius_{j} * w, ceiling_{j}) - start_{j}"


def write_optimistic_cost(form: RaysForm, j: int, i: int | str) -> str:
    """Return the optimistic cost of a ray's end less the start's."""
    return f"{write_estimate(form, j, i)} - cost_radius_{j} * w - start_{j}"


def write_optimistic_reward(form: RaysForm, i: int | str, step: str) -> str:
    return f"start_0 + {step} * ({write_estimate(form, 0, i)} + (beta_0 + bonus) * w - start_0)"


def write_radii(form: RaysForm) -> list[str]:
    """Return the lines for β of every signal, and for the bonus of the optimistic rewards."""
    costs = range(1, 1 + form.costs)
    data = f"log_det, {form.size}, t * length_squared"
    assumptions = [f"noise_{k}, bound_{k}, ridge, confidence_{k}" for k in range(1 + form.costs)]
    return [
        *(f"beta_{k} = radius({form.radius}, {declared}, {data})" for k, declared in enumerate(assumptions)),
        *(f"cost_radius_{j} = cost_confidence_scale * beta_{j}" for j in costs),
        "bonus = 0.0",
        *(f"bonus = larger(bonus, factor_{j} * beta_{j})" for j in costs),
    ]


def write_rays_bounds(form: RaysForm, i: int) -> list[str]:
    """Return the lines that rank a ray and, if audited, compare its intervals with the truth."""
    bound = write_optimistic_cost if form.directional else write_pessimistic_cost
    lines = [f"w = root({format_entry(i, i)})", "s = 1.0"]
    for j in range(1, 1 + form.costs):
        lines.append(f"s = lesser(s, ratio(slack_{j}, larger({bound(form, j, i)}, slack_{j})))")
    lines.append(f"h_{i} = {write_optimistic_reward(form, i, 's')}")
    for k in range(1 + form.costs if form.audited else 0):
        deviation = f"abs({write_estimate(form, k, i)} - sign_{k} * truth[{k}, {i}])"
        lines.append(f"miss_{k} = miss_{k} or {deviation} > beta_{k} * w + {ROUNDING}")
    return lines


def write_choice(form: RaysForm) -> list[str]:
    """Return the lines that find the first of the best rays, and copy its column of G and its estimates."""
    every, signals = range(form.rays), range(1 + form.costs)
    lines = ["top = h_0", *(f"top = larger(top, h_{i})" for i in every[1:]), "floor = tie_floor(top)", "ray = 0"]
    lines += [f"ray = {i} if h_{i} >= floor else ray" for i in reversed(every)]
    lines += (
        [f"q_{i} = {format_entry(i, 0)}" for i in every]
        + [f"a_{k} = e_{k}_0" for k in signals]
        + [f"diagonal = {format_entry(0, 0)}"]
    )
    for r in every[1:]:
        copies = [*(f"q_{i} = {format_entry(i, r)}" for i in every), *(f"a_{k} = e_{k}_{r}" for k in signals)]
        lines += [f"if ray == {r}:", *(f"    {line}" for line in [*copies, f"diagonal = {format_entry(r, r)}"])]
    return lines


def write_step(form: RaysForm) -> list[str]:
    """Return the lines for the step on the chosen ray, exactly, because safety depends on it."""
    lines = ["w = math.sqrt(larger(diagonal, 0.0))", "step = 1.0", "s = 1.0"]
    for j in range(1, 1 + form.costs):
        lines.append(f"step = lesser(step, safe_step({write_pessimistic_cost(form, j, 'ray')}, slack_{j}))")
        if form.directional:
            lines.append(f"s = lesser(s, safe_step({write_optimistic_cost(form, j, 'ray')}, slack_{j}))")
    lines.append("step = lesser(step, s)")
    lines.append(f"optimistic_reward = {write_optimistic_reward(form, 'ray', 's' if form.directional else 'step')}")
    if form.offers_safe:
        lines += ["if tie_floor(start_0) > optimistic_reward:", "    step, optimistic_reward = 0.0, start_0"]
    return lines


def write_rays_update(form: RaysForm) -> list[str]:
    """Return the lines that learn the outcome."""
    every = range(form.rays)
    lines = ["alpha = 1.0 + step * step * diagonal", "log_det += math.log(alpha)", "shrink = step / alpha"]
    for k in range(1 + form.costs):
        prior = f"start_{k}" if form.origin else f"(start_{k} + step * (known[{k}, ray] - start_{k}))"
        lines.append(f"v = shrink * (outcome_{k} - {prior} - step * a_{k})")
        lines += [f"e_{k}_{i} += v * q_{i}" for i in every]
    lines.append("shrink *= step")
    for i in every:
        lines += [f"u = shrink * q_{i}", *(f"{format_entry(i, j)} -= u * q_{j}" for j in every[i:])]
    return lines


def write_rays_source(form: RaysForm) -> str:
    """Return the source of the loop over fixed rays whose safe action is known."""
    every, signals, means = range(form.rays), range(1 + form.costs), range(form.signals)
    start = ["log_det = 0.0", *(f"{format_entry(i, j)} = gram[{i}, {j}]" for i in every for j in every[i:])]
    start += [f"e_{k}_{i} = 0.0" for k in signals for i in every]
    safe = "sign_{s} * safe_{s}"
    body = [
        *write_radii(form),
        *(f"miss_{k} = False" for k in signals),
        *(line for i in every for line in write_rays_bounds(form, i)),
        *write_choice(form),
        *write_step(form),
        *(f"mean_{s} = {safe} + step * (truth[{s}, ray] - {safe})".replace("{s}", str(s)) for s in means),
        *write_outcome(form.signals, form.kind),
        *(f"signed_{s} = sign_{s} * mean_{s}" for s in means),
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in signals),
        *write_record(form.signals, form.judged, form.audited),
        *write_rays_update(form),
    ]
    arguments = ["gram", "known", "truth", *list_scalar_names(form), *list_world_names(form.signals)]
    return write_loop(arguments, form.signals, start, body)
