"""Source text of GPU loops in which every number of a run is a variable of its own, so that they stay in registers.

An array that a thread indexes lies in memory; a variable does not. With ten rays a run is 55 entries of a symmetric
matrix and 20 estimates, and a round then touches no memory at all (benchmarks/README.md has the comparison). The
formulas are those of the kernels with loops written out; radii, draws, exact steps, ties and shares are called from
there, and what ranks candidates from lockstep.py. Here: what the loops over rays and over arms share.
"""

from textwrap import indent

from stagewise.kernels.audit import FIRST, HOPELESS, MISSED, NEARLY, ROUNDING, SETTLED
from stagewise.kernels.draw import OUTCOME
from stagewise.kernels.trace import REGRET, VIOLATIONS
from stagewise.kernels.world import CLIPPED, GAUSSIAN

TRACE = "regret, reward, cost, bests, largest, running, audit"
PLACES = {  # in a record, by the names that the text has for them
    "REGRET": REGRET,
    "VIOLATIONS": VIOLATIONS,
    "FIRST": FIRST,
    "HOPELESS": HOPELESS,
    "SETTLED": SETTLED,
    "MISSED": MISSED,
}
AUDITING = (  # the first violation, hopes below the optimum, and when most of it was reached
    "first_violation = t + 1 if broken and first_violation == 0 else first_violation",
    f"hopeless += 1 if hoped < best - {ROUNDING} else 0",
    f"gained = best > safe_0 and signed_0 - safe_0 >= {NEARLY} * (best - safe_0)",
    "settled = t + 1 if settled == 0 and gained else settled",
)


def noting(signals: int, judged: bool, audited: bool) -> list[str]:
    """Return the lines that take down a round, whose true expected signals are `signed_s`."""
    costs = range(1, signals)
    broken = " or ".join(f"signed_{s} > threshold_{s}" for s in costs) if judged else "False"
    return [
        "total += best - signed_0",
        *(f"sum_{s} += signed_{s}" for s in range(signals)),
        *(f"top_{s} = larger(top_{s}, signed_{s})" for s in costs),
        f"broken = {broken}",
        "violations += 1 if broken else 0",
        *(AUDITING if audited else ()),
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
    """Return the whole of a loop: what it is told, how a run and its record begin, a round, and the record's end."""
    costs = range(1, signals)
    return f"""def play({", ".join(arguments)}, tables, ends, runs, seed, rounds, {TRACE}):
    place = cuda.grid(1)
    if place < runs.size:
        run = runs[place]
        total = 0.0
{indented([*(f"sum_{s} = 0.0" for s in range(signals)), *(f"top_{s} = -math.inf" for s in costs)], 2)}
        violations = 0
        first_violation = 0
        hopeless = 0
        settled = 0
{indented([f"missed_{s} = 0" for s in range(signals)], 2)}
        interval = 0
        begun = 0
        end = ends[0]
{indented(begin, 2)}
        for t in range(rounds):
{indented(body, 3)}
        running[place, REGRET] = total
        running[place, VIOLATIONS] = violations
{indented([f"largest[place, {s - 1}] = top_{s}" for s in costs], 2)}
        audit[place, FIRST] = first_violation
        audit[place, HOPELESS] = hopeless
        audit[place, SETTLED] = settled
{indented([f"audit[place, MISSED + {s}] = missed_{s}" for s in range(signals)], 2)}
"""


def indented(lines: list[str], depth: int) -> str:
    """Return lines at a depth of four spaces each."""
    return indent("\n".join(lines), "    " * depth)
