"""What the printed forms do, and what ours do in the same runs."""

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.as_printed.plan import OURS, PRINTED, SAME, name_of
from stagewise_reproduction.claim import Claim, approach, clearly_smaller, exponent, safety, verdict
from stagewise_reproduction.instances import slug

SECOND = 0.1  # regret of a round on the second-best ray of the problem for Algorithm 5


def hopeless(result: Result) -> float:
    """Return the share of all rounds whose optimistic reward was below the best that was possible."""
    counts = (result.audit or {})["hopeless"]
    return float(counts.sum() / (len(result.runs) * result.rounds[-1]))


def stuck(result: Result) -> int:
    """Return how many runs lose at least as much in the last quarter as the second-best ray does in every round."""
    begin = int(result.rounds.searchsorted(0.75 * result.rounds[-1]))
    lost = result.regret[:, -1] - result.regret[:, begin]
    return int((lost / (result.rounds[-1] - result.rounds[begin]) >= SECOND - 1e-6).sum())


def limits(results: dict[str, Result]) -> list[Claim]:
    """Return whether limits are kept: by our forms it must hold, by the printed ones it is looked at."""
    printed = {name: result for name, result in results.items() if name.endswith(slug(PRINTED))}
    ours = safety({name: result for name, result in results.items() if name not in printed})
    theirs = safety(printed)
    return [ours, theirs._replace(name=f"as printed: {theirs.name}", must_hold=False)]


def check(_: str, results: dict[str, Result]) -> list[Claim]:
    """Return every claim with its verdict."""

    def of(problem: str, player: str) -> Result:
        return results[name_of(problem, player)]

    same = "the printed bonus is not always the worse one"
    statement = "LC-LUCB, x₀ ≠ 0, the paper's sets: less regret with our bonus than with the printed one"
    claims = [*limits(results), clearly_smaller(statement, of("LC-LUCB", SAME), of("LC-LUCB", PRINTED), same)]
    statement = "OPLB, x₀ ≠ 0, the paper's sets: less regret with our bonus than with the printed one"
    claims.append(clearly_smaller(statement, of("OPLB", SAME), of("OPLB", PRINTED), same))
    for problem in ("LC-LUCB", "OPLB"):
        share = hopeless(of(problem, PRINTED))
        statement = f"{problem} as printed, one R and one S: every round is optimistic"
        claims.append(Claim(statement, f"{share:.1%}", "0 % of rounds below", verdict(share == 0.0)))
    claims += warm_up(of("Algorithm 5", PRINTED), of("Algorithm 5", OURS))
    empty = sum(of("Algorithm 5, d = 10", PRINTED).manifest["empty"])
    statement = "Algorithm 5 as printed, d = 10: rounds after the warm-up in which no action is certified"
    claims.append(Claim(statement, float(empty), "at least 1", verdict(empty >= 1)))
    printed, ours = of("OPNLB", PRINTED), of("OPNLB", OURS)
    statement = "OPNLB as printed excludes no function, so that its regret is linear"
    claims.append(Claim(statement, round(exponent(printed), 3), "exponent 1", verdict(exponent(printed) > 0.999)))
    statement = "OPNLB with likelihood-ratio sets: the reward approaches the optimum"
    claims.append(Claim(statement, f"{approach(ours):.1%}", "at least 90 %", verdict(approach(ours) >= 0.9)))
    printed, ours = of("LC-LUCB on points", PRINTED), of("LC-LUCB on points", OURS)
    statement = "LC-LUCB on a set that is not star-convex never leaves the safe action"
    left = float(printed.max_cost.max())
    claims.append(Claim(statement, left, "largest expected cost 0", verdict(left == 0.0)))
    statement = "OPLB on the same actions: the reward approaches the optimum"
    claims.append(Claim(statement, f"{approach(ours):.1%}", "at least 80 %", verdict(approach(ours) >= 0.8)))
    return claims


def warm_up(printed: Result, ours: Result) -> list[Claim]:
    """Return what becomes of optimism and of regret after Algorithm 5."""
    share, kept = hopeless(printed), hopeless(ours)
    least = "at least 10 % of rounds"
    statement = "Algorithm 5 as printed hopes for less than is possible"
    claims = [Claim(statement, f"{share:.1%}", least, verdict(share >= 0.1))]
    statement = "Algorithm 5, certified every round: every round is optimistic"
    claims.append(Claim(statement, f"{kept:.1%}", "0 % of rounds below", verdict(kept == 0.0), True))
    statement = "Algorithm 5 as printed: runs that end on the second-best ray, with linear regret"
    claims.append(Claim(statement, float(stuck(printed)), "at least 1", verdict(stuck(printed) >= 1)))
    statement = "Algorithm 5, certified every round: no run does"
    claims.append(Claim(statement, float(stuck(ours)), "0", verdict(stuck(ours) == 0)))
    statement = "Algorithm 5: less regret when certified every round"
    claims.append(clearly_smaller(statement, ours, printed, "the warm-up was cheaper here"))
    return claims
