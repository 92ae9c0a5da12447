"""Source text of GPU loops in which every number of a run is a variable of its own, so that they stay in registers.

An array that a thread indexes lies in memory; a variable does not. With ten rays a run is 55 entries of a symmetric
matrix and 20 estimates, and a round then touches no memory at all (benchmarks/README.md has the comparison). The
formulas are those of the kernels with loops written out; radii, draws, exact steps, ties and shares are called from
there, and what ranks candidates from lockstep.py. Here: what the loops over rays and over arms share.
"""

from collections.abc import Iterable

from stagewise.kernels.audit import NEARLY, ROUNDING
from stagewise.kernels.draw import OUTCOME
from stagewise.kernels.world import CLIPPED, GAUSSIAN

TRACE = "regret, reward, cost, bests, largest, running, audit"


def indented(lines: Iterable[str], depth: int) -> str:
    """Return lines at a depth of four spaces each."""
    return "\n".join("    " * depth + line for line in lines)


def noting(signals: int, judged: bool, audited: bool, mean: str) -> list[str]:
    """Return the lines that take down a round: `mean` names the true expected signals, signed."""
    costs = range(1, signals)
    broken = " or ".join(f"{mean}{s} > threshold_{s}" for s in costs) if judged else "False"
    return [
        f"total += best - {mean}0",
        f"sum_0 += {mean}0",
        *(f"sum_{s} += {mean}{s}" for s in costs),
        *(f"top_{s} = larger(top_{s}, {mean}{s})" for s in costs),
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
        lines.append(f"one, other = uniform_pair(seed, run, t, {OUTCOME}, {first // 2})")
        lines += ["one, other = normals(one, other, tables)"] if normal else []
        for s, draw in zip(range(first, min(first + 2, signals)), ("one", "other"), strict=False):
            drawn = f"{draw}, 0.0" if normal else f"0.0, {draw}"
            lines.append(f"seen_{s} = sign_{s} * noisy({kind}, mean_{s}, scale_{s}, {drawn})")
    return lines


def world_names(signals: int) -> list[str]:
    """Return the scalars that describe the truth."""
    each = [[f"scale_{s}", f"sign_{s}", f"safe_{s}"] for s in range(signals)]
    return [*(name for names in each for name in names), *(f"threshold_{s}" for s in range(1, signals)), "best"]


def loop(arguments: list[str], signals: int, begin: list[str], body: list[str]) -> str:
    """Return the whole of a loop: what it is told, how a run begins, and a round."""
    told = ", ".join([*arguments, "tables"])
    return f"""def play({told}, ends, runs, seed, rounds, {TRACE}):
    place = cuda.grid(1)
    if place < runs.size:
{indented([*opening(signals), *begin], 2)}
        for t in range(rounds):
{indented(body, 3)}
{indented(closing(signals), 2)}
"""
