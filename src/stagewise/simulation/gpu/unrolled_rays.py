"""The loop over a few fixed rays, written out (see unrolled.py): LC-LUCB, ROFUL and LinUCB from a known safe action.

With G = Z V⁻¹ Zᵀ of the rays' ends, ŷ = Z θ̂ and the chosen ray a at step s (docs/decisions/0009):

    ‖zᵢ‖_{V⁻¹} = √Gᵢᵢ,   G ← G − s² G·a Gᵀ·a / (1 + s² Gaa),   ŷ ← ŷ + s (y − s ŷa) G·a / (1 + s² Gaa)
"""

from typing import NamedTuple

from stagewise.kernels.audit import ROUNDING
from stagewise.simulation.gpu.unrolled import loop, noting, seeing, world_names


class RaysForm(NamedTuple):
    """What the loop over fixed rays is written for."""

    rays: int  # M
    costs: int  # m: the policy's constraints
    signals: int  # 1 + the world's costs
    origin: bool  # nothing is known of the rays but their learned part
    directional: bool
    offers_safe: bool
    radius: int  # which (see kernels/signals/radius.py)
    size: int  # n: learned coordinates
    kind: int  # of the noise
    judged: bool  # there are thresholds to break
    audited: bool  # keep count of what the theorems promise, too


def pair(i: int, j: int) -> str:
    """Return the name of an entry of the symmetric matrix."""
    return f"g_{min(i, j)}_{max(i, j)}"


def scalar_names(form: RaysForm) -> list[str]:
    """Return the scalars of a policy on rays."""
    each = [[f"noise_{k}", f"bound_{k}", f"confidence_{k}", f"start_{k}"] for k in range(1 + form.costs)]
    limits = [[f"slack_{j}", f"ceiling_{j}", f"factor_{j}"] for j in range(1, 1 + form.costs)]
    return [*(name for names in [*each, *limits] for name in names), "cost_scale", "ridge", "length_squared"]


def estimate(form: RaysForm, k: int, i: int | str) -> str:
    """Return the estimate of a signal at a ray's end: the known part and the learned one; "ray" is the chosen one."""
    learned = f"a_{k}" if i == "ray" else f"e_{k}_{i}"
    return learned if form.origin else f"known[{k}, {i}] + {learned}"


def dearest(form: RaysForm, j: int, i: int | str) -> str:
    """Return how much dearer than the start a ray's end may be."""
    return f"lesser({estimate(form, j, i)} + cost_radius_{j} * w, ceiling_{j}) - start_{j}"


def cheapest(form: RaysForm, j: int, i: int | str) -> str:
    """Return how much dearer than the start a ray's end is at least."""
    return f"{estimate(form, j, i)} - cost_radius_{j} * w - start_{j}"


def hope(form: RaysForm, i: int | str, step: str) -> str:
    """Return the most that a step on a ray may be worth."""
    return f"start_0 + {step} * ({estimate(form, 0, i)} + (beta_0 + lift) * w - start_0)"


def radii(form: RaysForm) -> list[str]:
    """Return the lines for β of every signal, and for what lifts the hopes."""
    costs = range(1, 1 + form.costs)
    seen = f"log_det, {form.size}, t * length_squared"
    told = [f"noise_{k}, bound_{k}, ridge, confidence_{k}" for k in range(1 + form.costs)]
    return [
        *(f"beta_{k} = radius({form.radius}, {declared}, {seen})" for k, declared in enumerate(told)),
        *(f"cost_radius_{j} = cost_scale * beta_{j}" for j in costs),
        "lift = 0.0",
        *(f"lift = larger(lift, factor_{j} * beta_{j})" for j in costs),
    ]


def look(form: RaysForm, i: int) -> list[str]:
    """Return the lines that rank a ray, and compare its intervals with the truth where that is asked for."""
    bound = cheapest if form.directional else dearest
    lines = [f"w = root({pair(i, i)})", "s = 1.0"]
    for j in range(1, 1 + form.costs):
        lines.append(f"s = lesser(s, ratio(slack_{j}, larger({bound(form, j, i)}, slack_{j})))")
    lines.append(f"h_{i} = {hope(form, i, 's')}")
    for k in range(1 + form.costs if form.audited else 0):
        apart = f"abs({estimate(form, k, i)} - sign_{k} * truth[{k}, {i}])"
        lines.append(f"miss_{k} = miss_{k} or {apart} > beta_{k} * w + {ROUNDING}")
    return lines


def choose(form: RaysForm) -> list[str]:
    """Return the lines that find the first of the best rays, and take its column of G and its estimates."""
    every, signals = range(form.rays), range(1 + form.costs)
    lines = ["top = h_0", *(f"top = larger(top, h_{i})" for i in every[1:]), "floor = tie_floor(top)", "ray = 0"]
    lines += [f"ray = {i} if h_{i} >= floor else ray" for i in reversed(every)]
    lines += [f"q_{i} = {pair(i, 0)}" for i in every] + [f"a_{k} = e_{k}_0" for k in signals] + [f"own = {pair(0, 0)}"]
    for r in every[1:]:
        taken = [*(f"q_{i} = {pair(i, r)}" for i in every), *(f"a_{k} = e_{k}_{r}" for k in signals)]
        lines += [f"if ray == {r}:", *(f"    {line}" for line in [*taken, f"own = {pair(r, r)}"])]
    return lines


def step(form: RaysForm) -> list[str]:
    """Return the lines for how far to go on the chosen ray: exactly, since this is what keeps the limits."""
    lines = ["w = math.sqrt(larger(own, 0.0))", "step = 1.0", "s = 1.0"]
    for j in range(1, 1 + form.costs):
        lines.append(f"step = lesser(step, safe_step({dearest(form, j, 'ray')}, slack_{j}))")
        if form.directional:
            lines.append(f"s = lesser(s, safe_step({cheapest(form, j, 'ray')}, slack_{j}))")
    lines.append("step = lesser(step, s)")
    lines.append(f"hoped = {hope(form, 'ray', 's' if form.directional else 'step')}")
    if form.offers_safe:
        lines += ["if tie_floor(start_0) > hoped:", "    step, hoped = 0.0, start_0"]
    return lines


def learn(form: RaysForm) -> list[str]:
    """Return the lines that take in what was seen."""
    every = range(form.rays)
    lines = ["spread = 1.0 + step * step * own", "log_det += math.log(spread)", "shrink = step / spread"]
    for k in range(1 + form.costs):
        part = f"start_{k}" if form.origin else f"(start_{k} + step * (known[{k}, ray] - start_{k}))"
        lines.append(f"v = shrink * (seen_{k} - {part} - step * a_{k})")
        lines += [f"e_{k}_{i} += v * q_{i}" for i in every]
    lines.append("shrink *= step")
    for i in every:
        lines += [f"u = shrink * q_{i}", *(f"{pair(i, j)} -= u * q_{j}" for j in every[i:])]
    return lines


def written(form: RaysForm) -> str:
    """Return the loop over fixed rays whose safe action is known."""
    every, signals, means = range(form.rays), range(1 + form.costs), range(form.signals)
    begin = ["log_det = 0.0", *(f"{pair(i, j)} = gram[{i}, {j}]" for i in every for j in every[i:])]
    begin += [f"e_{k}_{i} = 0.0" for k in signals for i in every]
    safe = "sign_{s} * safe_{s}"
    body = [
        *radii(form),
        *(f"miss_{k} = False" for k in signals),
        *(line for i in every for line in look(form, i)),
        *choose(form),
        *step(form),
        *(f"mean_{s} = {safe} + step * (truth[{s}, ray] - {safe})".replace("{s}", str(s)) for s in means),
        *seeing(form.signals, form.kind),
        *(f"signed_{s} = sign_{s} * mean_{s}" for s in means),
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in signals),
        *noting(form.signals, form.judged, form.audited),
        *learn(form),
    ]
    arguments = ["gram", "known", "truth", *scalar_names(form), *world_names(form.signals)]
    return loop(arguments, form.signals, begin, body)
