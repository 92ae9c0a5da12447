"""What the report says of each experiment, whatever its form."""

from typing import NamedTuple

from stagewise.reports.result import Result
from stagewise_reproduction.cell import SEED
from stagewise_reproduction.claim import FAILS, HOLDS, Claim
from stagewise_reproduction.experiment import Experiment
from stagewise_reproduction.paper.figure_1.claims import FULL, PUBLISHED

TITLE = "Contextual bandits with stage-wise constraints, reproduced"
PAPER = "Pacchiano, Ghavamzadeh, Bartlett, JMLR 26 (2025): every experiment, every claim, by stagewise."
SMALL = " So few rounds show only that everything works; judge the claims at the size quick or full."


class Section(NamedTuple):
    """One experiment under one preset."""

    experiment: Experiment
    preset: str
    picture: str
    results: dict[str, Result]
    claims: list[Claim]

    @property
    def title(self) -> str:
        """The heading; what an experiment does not distinguish is not named."""
        alone = len(self.experiment.presets) == 1
        return self.experiment.title if alone else f"{self.experiment.title} — preset {self.preset}"


def summary(size: str, sections: list[Section]) -> str:
    """Return what came out, in two sentences."""
    claims = [claim for section in sections for claim in section.claims]
    lost, must = sum(claim.verdict == FAILS for claim in claims), [claim for claim in claims if claim.must_hold]
    kept = sum(claim.verdict == HOLDS for claim in claims)
    broken = sum(claim.verdict == FAILS for claim in must)
    what = "no round above a limit, no regret beyond its bound"
    firm = (
        f"All {len(must)} claims that must hold do: {what}."
        if not broken
        else f"{broken} of {len(must)} claims that must hold do not: {what}."
    )
    rest = len(claims) - kept - lost
    words = f"{firm} Of all {len(claims)} claims {kept} hold, {rest} hold with a remark, {lost} do not"
    return f"{words}; size {size}, and nothing is tuned until it holds." + (SMALL if size == "smoke" else "")


def whole(sections: list[Section]) -> bool:
    """Say whether everything holds that must."""
    return not any(claim.must_hold and claim.verdict == FAILS for section in sections for claim in section.claims)


def shown(value: float | str) -> str:
    """Return a claim's value as people read it."""
    return value if isinstance(value, str) else f"{value:,.6g}"


def described(section: Section) -> str:
    """Return what is played, and from which random numbers."""
    runs = len(next(iter(section.results.values())).runs)
    return f"{section.experiment.words} Seed {SEED}, runs 0 to {runs - 1}."


def rows_of(section: Section) -> list[list[str]]:
    """Return the table under a figure: what was played, what came out, how fast."""
    rows = []
    for result in section.results.values():
        settings = dict(result.manifest["cell"])
        policy = settings.pop("policy")
        settings.pop("preset")
        last, rounds = result.regret[:, -1], int(result.rounds[-1])
        speed = rounds * len(result.runs) / max(result.manifest["seconds"], 1e-9)
        published = PUBLISHED.get((policy, settings.get("tau", 0.0))) if compares(section, rounds) else None
        known = [f"{published[0]:,.0f} ± {published[1]:,.0f}", f"{last.mean() / published[0]:.3f}"] if published else []
        rows.append(
            [
                policy,
                ", ".join(f"{'τ' if name == 'tau' else name} = {value}" for name, value in settings.items()),
                f"{last.mean():,.0f} ± {last.std():,.0f}",
                *(known or (["", ""] if compares(section, rounds) else [])),
                f"{int(result.violations.sum()):,}",
                f"{len(result.runs)} × {rounds:,}",
                f"{result.manifest['seconds']:.1f}",
                f"{speed / 1e6:.1f}",
            ]
        )
    return rows


def compares(section: Section, rounds: int) -> bool:
    """Say whether published regrets stand beside ours."""
    ten = section.experiment.name in ("figure-1", "figure-linear-d10")
    return ten and section.preset == "authors" and rounds == FULL


def headings(section: Section) -> list[str]:
    """Return the heads of that table."""
    rounds = int(next(iter(section.results.values())).rounds[-1])
    known = ["published", "ratio"] if compares(section, rounds) else []
    return ["policy", "settings", "final regret", *known, "violations", "runs × rounds", "seconds", "Mrounds/s"]
