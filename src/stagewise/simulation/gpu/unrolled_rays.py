"""Source text of the unrolled loop over fixed rays (see unrolled.py): LC-LUCB, ROFUL, LinUCB from a known safe action.

With G = Z V⁻¹ Zᵀ of the rays' ends, ŷ = Z θ̂ and the chosen ray a at step s (docs/decisions/0009):

    ‖zᵢ‖_{V⁻¹} = √Gᵢᵢ,   G ← G − s² G·a Gᵀ·a / (1 + s² Gaa),   ŷ ← ŷ + s (y − s ŷa) G·a / (1 + s² Gaa)
"""

from typing import NamedTuple

from stagewise.engine.trace import ROUNDING
from stagewise.simulation.gpu.unrolled import list_world_names, write_loop, write_outcome, write_record


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


def write_bounds(form: RaysForm, i: int) -> list[str]:
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


def write_update(form: RaysForm) -> list[str]:
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


def write_source(form: RaysForm) -> str:
    """Return the source of the loop over fixed rays whose safe action is known."""
    every, signals, means = range(form.rays), range(1 + form.costs), range(form.signals)
    start = ["log_det = 0.0", *(f"{format_entry(i, j)} = gram[{i}, {j}]" for i in every for j in every[i:])]
    start += [f"e_{k}_{i} = 0.0" for k in signals for i in every]
    safe = "sign_{s} * safe_{s}"
    body = [
        *write_radii(form),
        *(f"miss_{k} = False" for k in signals),
        *(line for i in every for line in write_bounds(form, i)),
        *write_choice(form),
        *write_step(form),
        *(f"mean_{s} = {safe} + step * (truth[{s}, ray] - {safe})".replace("{s}", str(s)) for s in means),
        *write_outcome(form.signals, form.kind),
        *(f"signed_{s} = sign_{s} * mean_{s}" for s in means),
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in signals),
        *write_record(form.signals, form.judged, form.audited),
        *write_update(form),
    ]
    arguments = ["gram", "known", "truth", *list_scalar_names(form), *list_world_names(form.signals)]
    return write_loop(arguments, form.signals, start, body)
