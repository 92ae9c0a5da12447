"""Claims about the printed algorithms, compared with ours in the same runs."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.as_printed.plan import OURS, PRINTED, SAME_SETS, build_name
from stagewise_reproduction.claim import (
    Claim,
    check_clearly_smaller,
    check_safety,
    compute_approach,
    compute_exponent,
    to_verdict,
)
from stagewise_reproduction.instances import make_slug

SECOND = 0.1  # regret per round of the second-best ray in the problem for Algorithm 5


def compute_optimism_failure_rate(result: Result) -> float:
    """Return the share of rounds whose optimistic reward was below the optimum."""
    counts = (result.audit or {})["optimism_failures"]
    return float(counts.sum() / (len(result.runs) * result.rounds[-1]))


def count_stuck_runs(result: Result) -> int:
    """Return how many runs lose, in the last quarter, at least as much per round as the second-best ray."""
    start = int(result.rounds.searchsorted(0.75 * result.rounds[-1]))
    loss = result.regret[:, -1] - result.regret[:, start]
    return int((loss / (result.rounds[-1] - result.rounds[start]) >= SECOND - 1e-6).sum())


def check_limits(results: dict[str, Result]) -> list[Claim]:
    """Return the claims about limits: required of our forms, only reported for the printed ones."""
    printed = {name: result for name, result in results.items() if name.endswith(make_slug(PRINTED))}
    ours = check_safety({name: result for name, result in results.items() if name not in printed})
    theirs = check_safety(printed)
    return [ours, theirs._replace(name=f"as printed: {theirs.name}", must_hold=False)]


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""

    def of(problem: str, player: str) -> Result:
        return results[build_name(problem, player)]

    same = "the printed bonus is not always the worse one"
    statement = "LC-LUCB, x₀ ≠ 0, the paper's sets: less regret with our bonus than with the printed one"
    claims = [
        *check_limits(results),
        check_clearly_smaller(statement, of("LC-LUCB", SAME_SETS), of("LC-LUCB", PRINTED), same),
    ]
    statement = "OPLB, x₀ ≠ 0, the paper's sets: less regret with our bonus than with the printed one"
    claims.append(check_clearly_smaller(statement, of("OPLB", SAME_SETS), of("OPLB", PRINTED), same))
    for problem in ("LC-LUCB", "OPLB"):
        share = compute_optimism_failure_rate(of(problem, PRINTED))
        statement = f"{problem} as printed, one R and one S: every round is optimistic"
        claims.append(Claim(statement, f"{share:.1%}", "0 % of rounds below", to_verdict(share == 0.0)))
    claims += check_warm_up(of("Algorithm 5", PRINTED), of("Algorithm 5", OURS))
    empty = sum(of("Algorithm 5, d = 10", PRINTED).manifest["empty"])
    statement = "Algorithm 5 as printed, d = 10: rounds after the warm-up in which no action is certified"
    claims.append(Claim(statement, float(empty), "at least 1", to_verdict(empty >= 1)))
    printed, ours = of("OPNLB", PRINTED), of("OPNLB", OURS)
    statement = "OPNLB as printed excludes no function, so that its regret is linear"
    claims.append(
        Claim(
            statement, round(compute_exponent(printed), 3), "exponent 1", to_verdict(compute_exponent(printed) > 0.999)
        )
    )
    statement = "OPNLB with likelihood-ratio sets: the reward approaches the optimum"
    claims.append(
        Claim(statement, f"{compute_approach(ours):.1%}", "at least 90 %", to_verdict(compute_approach(ours) >= 0.9))
    )
    printed, ours = of("LC-LUCB on points", PRINTED), of("LC-LUCB on points", OURS)
    statement = "LC-LUCB on a set that is not star-convex never leaves the safe action"
    largest = float(printed.max_cost.max())
    claims.append(Claim(statement, largest, "largest expected cost 0", to_verdict(largest == 0.0)))
    statement = "OPLB on the same actions: the reward approaches the optimum"
    claims.append(
        Claim(statement, f"{compute_approach(ours):.1%}", "at least 80 %", to_verdict(compute_approach(ours) >= 0.8))
    )
    return claims


def check_warm_up(printed: Result, ours: Result) -> list[Claim]:
    """Return the claims about optimism and regret of Algorithm 5."""
    share, failure_rate = compute_optimism_failure_rate(printed), compute_optimism_failure_rate(ours)
    criterion = "at least 10 % of rounds"
    statement = "Algorithm 5 as printed: the optimistic reward is below the optimum"
    claims = [Claim(statement, f"{share:.1%}", criterion, to_verdict(share >= 0.1))]
    statement = "Algorithm 5, certified every round: every round is optimistic"
    claims.append(Claim(statement, f"{failure_rate:.1%}", "0 % of rounds below", to_verdict(failure_rate == 0.0), True))
    statement = "Algorithm 5 as printed: runs that end on the second-best ray, with linear regret"
    claims.append(
        Claim(statement, float(count_stuck_runs(printed)), "at least 1", to_verdict(count_stuck_runs(printed) >= 1))
    )
    statement = "Algorithm 5, certified every round: no run does"
    claims.append(Claim(statement, float(count_stuck_runs(ours)), "0", to_verdict(count_stuck_runs(ours) == 0)))
    statement = "Algorithm 5: less regret when certified every round"
    claims.append(check_clearly_smaller(statement, ours, printed, "the warm-up was cheaper here"))
    return claims
