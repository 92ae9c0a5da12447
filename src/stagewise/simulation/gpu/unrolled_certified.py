"""Source text of the unrolled loop of CAPS on fixed rays from a known safe action (see unrolled.py).

With T lower triangular, V⁻¹ = TᵀT, the played end z = s x and g = V⁻¹z (Carlson's recursion, `models/regression.py`):

    x̃ᵢ = x̂ᵢ + ν R <Tᵀη, xᵢ>,   x̂ᵢ ← x̂ᵢ + <g, xᵢ> (y − ẑ)/(1 + <g, z>),   ‖xᵢ‖² ← ‖xᵢ‖² − <g, xᵢ>²/(1 + <g, z>)

The ends of an interval are the tightest so far of the ellipsoid and of the candidate's own set.
"""

from typing import NamedTuple

from stagewise.engine.loop import ROUNDING
from stagewise.engine.random import POSTERIOR
from stagewise.simulation.gpu.unrolled import list_world_names, write_loop, write_outcome, write_record


class CertifiedForm(NamedTuple):
    """What the loop is generated for."""

    rays: int  # M
    costs: int  # m: the policy's constraints
    signals: int  # 1 + the world's costs
    radius: int  # kind (see models/regression.py)
    size: int  # n: learned coordinates
    kind: int  # of the noise
    judged: bool  # there are thresholds
    audited: bool  # keep an audit


def list_scalar_names(form: CertifiedForm) -> list[str]:
    each = [
        [f"{name}_{k}" for name in ("noise", "bound", "confidence", "start", "posterior", "low_edge", "high_edge")]
        for k in range(1 + form.costs)
    ]
    limits = [[f"slack_{j}", f"ceiling_{j}"] for j in range(1, 1 + form.costs)]
    return [*(name for names in [*each, *limits] for name in names), "reward_ceiling", "ratio_bound", "ridge", "energy"]


def write_maximum(values: list[str], top: str, index: str) -> list[str]:
    """Return the lines that find the first of the best values, by the tie rule."""
    lines = [f"{top} = {values[0]}", *(f"{top} = larger({top}, {value})" for value in values[1:])]
    lines += [f"floor = tie_floor({top})", f"{index} = 0"]
    return lines + [f"{index} = {i} if {value} >= floor else {index}" for i, value in reversed(list(enumerate(values)))]


def write_copies(form: CertifiedForm, index: str, names: list[str]) -> list[str]:
    """Return the lines that copy the numbers `name_i` of one ray to `name_c`."""
    lines = [f"{name}_c = {name}_0" for name in names]
    for ray in range(1, form.rays):
        lines += [f"if {index} == {ray}:", *(f"    {name}_c = {name}_{ray}" for name in names)]
    return lines


def write_ends(form: CertifiedForm) -> list[str]:
    """Return the lines that order the ends of the chosen ray: those that have crossed are exchanged."""
    lines = []
    for k in range(1 + form.costs):
        lines += [f"low = lesser(low_{k}_c, high_{k}_c)", f"high_{k}_c = larger(low_{k}_c, high_{k}_c)"]
        lines.append(f"low_{k}_c = low")
    return lines


def write_draws(form: CertifiedForm) -> list[str]:
    """Return the lines that draw η and compute Tᵀη for every signal."""
    n = form.size
    lines = [f"fill_normals(draws, {(1 + form.costs) * n}, seed, run, t, {POSTERIOR}, tables)"]
    for k in range(1 + form.costs):
        for i in range(n):
            lines.append(f"d = draws[{k * n + i}]")
            lines += [f"s_{k}_{j} {'=' if i == j else '+='} d * t_{i}_{j}" for j in range(i + 1)]
    return lines


def write_bounds(form: CertifiedForm, i: int) -> list[str]:
    """Return the lines for the drawn and the optimistic value of a ray."""
    lines = ["drawn_step = 1.0", "plausible = 1.0"]
    for k in reversed(range(1 + form.costs)):
        lines += [f"low = lesser(low_{k}_{i}, high_{k}_{i})", f"high = larger(low_{k}_{i}, high_{k}_{i})"]
        product = " + ".join(f"s_{k}_{j} * targets[{i * form.size + j}]" for j in range(form.size))
        lines.append(f"drawn = lesser(larger(estimate_{k}_{i} + posterior_{k} * ({product}), low), high)")
        if form.audited:
            deviation = f"abs(0.5 * (low + high) - sign_{k} * truth[{k}, {i}])"
            lines.append(f"miss_{k} = miss_{k} or {deviation} > 0.5 * (high - low) + {ROUNDING}")
        if k:
            slope = f"lesser(drawn, ceiling_{k}) - start_{k}"
            lines.append(f"drawn_step = lesser(drawn_step, ratio(slack_{k}, larger({slope}, slack_{k})))")
            lines.append(f"plausible = lesser(plausible, ratio(slack_{k}, larger(low - start_{k}, slack_{k})))")
    lines.append("high = larger(lesser(high, reward_ceiling), low)")
    lines.append(f"value_{i} = drawn_step * (lesser(drawn, high) - start_0)")
    lines.append(f"optimistic_{i} = start_0 + plausible * (high - start_0)")
    return lines


def write_exact_step(form: CertifiedForm) -> list[str]:
    """Return the lines for the longest safe step on the chosen ray, exactly, because safety depends on it."""
    costs = range(1, 1 + form.costs)
    slopes = [f"safe_step(lesser(high_{j}_c, ceiling_{j}) - start_{j}, slack_{j})" for j in costs]
    return ["step = 1.0", *(f"step = lesser(step, {slope})" for slope in slopes)]


def write_choice(form: CertifiedForm) -> list[str]:
    """Return the lines that certify the proposal, or choose the optimistic ray, or the safe action."""
    every, signals, costs = range(form.rays), range(1 + form.costs), range(1, 1 + form.costs)
    ends = [f"{end}_{k}" for k in signals for end in ("low", "high")]
    return [
        *write_maximum([f"value_{i}" for i in every], "top", "proposal"),
        "proposed = top > 0.0",
        *write_maximum([f"optimistic_{i}" for i in every], "top", "best_ray"),
        "highest = optimistic_0",
        *(f"highest = optimistic_{i} if best_ray == {i} else highest" for i in every[1:]),
        "value = lesser(highest, larger(reward_ceiling, start_0))",
        "played = tie_floor(highest) > start_0 and (proposed or value > start_0)",
        *write_copies(form, "proposal", ends),
        *write_ends(form),
        *write_exact_step(form),
        "most = 0.0",
        *(
            f"most = larger(most, (value - start_0) / slack_{j} * step * "
            f"larger(lesser(high_{j}_c, ceiling_{j}) - low_{j}_c, 0.0))"
            for j in costs
        ),
        "width = step * larger(lesser(high_0_c, reward_ceiling) - low_0_c, 0.0) + most",
        "lowest = (1.0 - step) * start_0 + step * low_0_c",
        "certified = proposed and value - lowest <= ratio_bound * width",
        "ray = proposal if certified else best_ray",
        *write_copies(form, "ray", [*ends, *(f"estimate_{k}" for k in signals)]),
        *write_ends(form),
        *write_exact_step(form),
        "if not played:",
        "    step = 0.0",
        "optimistic_reward = value if tie_floor(highest) > start_0 else start_0",
    ]


def write_update(form: CertifiedForm) -> list[str]:
    """Return the lines that learn the outcome: T, the estimates and the forms."""
    n, every, signals = form.size, range(form.rays), range(1 + form.costs)
    lines = ["alpha = 1.0", "root_before = 1.0", *(f"z_{j} = step * coordinates[ray, {j}]" for j in range(n))]
    for i in range(n):
        image = " + ".join(f"t_{i}_{j} * z_{j}" for j in range(i + 1))
        lines += [
            f"f = {image}",
            "before = alpha",
            "alpha += f * f",
            "root_after = inverse_root(alpha)",
            "give = root_before * root_after",
            "keep = before * give",
            "give *= f",
            "root_before = root_after",
        ]
        for j in range(i + 1):
            if i == j:
                lines += [f"g_{j} = f * t_{i}_{j}", f"t_{i}_{j} = t_{i}_{j} * keep"]
            else:
                lines += [
                    f"old = t_{i}_{j}",
                    f"t_{i}_{j} = old * keep - g_{j} * give",
                    f"g_{j} += f * old",
                ]
    lines += ["log_det += math.log(alpha)", "inverse = 1.0 / alpha"]
    for k in signals:
        lines.append(f"share_{k} = (outcome_{k} - ((1.0 - step) * start_{k} + step * estimate_{k}_c)) * inverse")
    for i in every:
        product = " + ".join(f"g_{j} * targets[{i * n + j}]" for j in range(n))
        lines += [f"pull = {product}", f"form_{i} -= pull * pull * inverse"]
        lines += [f"estimate_{k}_{i} += pull * share_{k}" for k in signals]
    return lines


def write_per_ray_sets(form: CertifiedForm) -> list[str]:
    """Return the lines for the set of the played ray, whose ends are infinite if nothing was played."""
    signals = range(1 + form.costs)
    lines = [f"{end}_{k}_c = {sign}math.inf" for k in signals for end, sign in (("low", "-"), ("high", ""))]
    lines += ["if step > 0.0 and t > 0:", "    weight = weights[ray] + step * step", "    weights[ray] = weight"]
    for k in signals:
        at = f"sums[{k * form.rays} + ray]"
        lines += [
            f"    sum_of = {at} + step * (outcome_{k} - start_{k})",
            f"    {at} = sum_of",
            f"    low_{k}_c = start_{k} + sum_of / weight - compute_half_width(noise_{k}, weight, low_edge_{k})",
            f"    high_{k}_c = start_{k} + sum_of / weight + compute_half_width(noise_{k}, weight, high_edge_{k})",
        ]
    return lines


def write_tightening(form: CertifiedForm) -> list[str]:
    """Return the lines that tighten all ends: by the ellipsoid, and for the played ray by the set of its plays."""
    lines = []
    for k in range(1 + form.costs):
        assumptions = f"noise_{k}, bound_{k}, ridge, confidence_{k}"
        lines.append(f"beta_{k} = radius({form.radius}, {assumptions}, log_det, {form.size}, (t + 1) * energy)")
    for i in range(form.rays):
        lines.append(f"w = root(form_{i})")
        for k in range(1 + form.costs):
            low, high, estimate = f"low_{k}_{i}", f"high_{k}_{i}", f"estimate_{k}_{i}"
            lines += [f"{low} = larger({low}, {estimate} - beta_{k} * w)"]
            lines += [f"{high} = lesser({high}, {estimate} + beta_{k} * w)"]
        lines.append(f"if ray == {i}:")
        for k in range(1 + form.costs):
            lines += [f"    low_{k}_{i} = larger(low_{k}_{i}, low_{k}_c)"]
            lines += [f"    high_{k}_{i} = lesser(high_{k}_{i}, high_{k}_c)"]
    return lines


def write_source(form: CertifiedForm) -> str:
    n, every, signals, means = form.size, range(form.rays), range(1 + form.costs), range(form.signals)
    numbers = (1 + form.costs) * form.rays
    start = [
        "log_det = 0.0",
        f"draws = cuda.local.array({2 * (((1 + form.costs) * n + 1) // 2)}, float64)",
        f"weights = cuda.local.array({form.rays}, float64)",
        f"sums = cuda.local.array({numbers}, float64)",
        *(f"weights[{i}] = 0.0" for i in every),
        *(f"sums[{i}] = 0.0" for i in range(numbers)),
        *(f"t_{i}_{j} = {'1.0 / math.sqrt(ridge)' if i == j else '0.0'}" for i in range(n) for j in range(i + 1)),
        *(f"form_{i} = initial[0, {i}]" for i in every),
        *(f"estimate_{k}_{i} = initial[{1 + 3 * k}, {i}]" for k in signals for i in every),
        *(f"low_{k}_{i} = initial[{2 + 3 * k}, {i}]" for k in signals for i in every),
        *(f"high_{k}_{i} = initial[{3 + 3 * k}, {i}]" for k in signals for i in every),
    ]
    safe = "sign_{s} * safe_{s}"
    body = [
        *write_draws(form),
        *(f"miss_{k} = False" for k in signals),
        *(line for i in every for line in write_bounds(form, i)),
        *write_choice(form),
        *(f"mean_{s} = {safe} + step * (truth[{s}, ray] - {safe})".replace("{s}", str(s)) for s in means),
        *write_outcome(form.signals, form.kind),
        *(f"signed_{s} = sign_{s} * mean_{s}" for s in means),
        *(f"missed_{k} += 1 if miss_{k} else 0" for k in signals),
        *write_record(form.signals, form.judged, form.audited),
        *write_update(form),
        *write_per_ray_sets(form),
        *write_tightening(form),
    ]
    arguments = [
        "initial",
        "coordinates",
        "targets",
        "truth",
        *list_scalar_names(form),
        *list_world_names(form.signals),
    ]
    return write_loop(arguments, form.signals, start, body)
