"""Source text of unrolled GPU loops, in which every number of a run is a local variable that stays in a register.

An array that a thread indexes is in memory; a local variable is not. With ten rays a run has 55 entries of a symmetric
matrix and 20 estimates, and a round then accesses no memory at all (benchmarks/README.md has the comparison). The
formulas are those of the kernels with their loops unrolled; radii, draws, exact steps, ties and shares are called from
the kernels, and the arithmetic that ranks candidates from lockstep.py. This module has the lines that the loops over
rays and over arms share.
"""

from textwrap import indent

from stagewise.engine.random import OUTCOME
from stagewise.engine.trace import (
    FIRST_NEAR_OPTIMAL_ROUND,
    FIRST_VIOLATION,
    INTERVAL_MISSES,
    NEAR_OPTIMAL_SHARE,
    OPTIMISM_FAILURES,
    REGRET,
    ROUNDING,
    VIOLATIONS,
)
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
