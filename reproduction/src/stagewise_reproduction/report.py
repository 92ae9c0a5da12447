"""What the report says of each experiment, whatever its form."""

from typing import NamedTuple

from stagewise.reports.result import Result
from stagewise_reproduction.cell import SEED
from stagewise_reproduction.claim import FAILS, HOLDS, Claim, LimitCount
from stagewise_reproduction.experiment import Experiment
from stagewise_reproduction.stored import LAST_COMMIT, REPOSITORY, ROUNDS, STORED, Stored

TITLE = "Contextual bandits with stage-wise constraints, reproduced"
PAPER = (
    "Pacchiano, Ghavamzadeh, Bartlett, JMLR 26 (2025): its experiments, and others, by stagewise. "
    "“Claims of the text” says which of its claims are checked here."
)
NAMED = 3  # broken claims that the headline names
SMALL = "So few rounds show only that everything works; judge the claims at the size quick or full."


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
        return f"{self.experiment.title} — {self.label}" if self.label else self.experiment.title

    @property
    def label(self) -> str:
        """What a picture is labelled with: its preset, where the experiment distinguishes several."""
        return "" if len(self.experiment.presets) == 1 else f"preset {self.preset}"


def summary(size: str, claims: list[Claim]) -> str:
    """Return what came out: limits, claims that must hold, all claims."""
    lost, kept = (sum(claim.verdict == word for claim in claims) for word in (FAILS, HOLDS))
    rest = len(claims) - kept - lost
    words = f"Of all {len(claims)} claims {kept} hold, {rest} with a remark, {lost} do not; size {size}."
    return " ".join(filter(None, (limits_kept(claims), must_hold(claims), words, SMALL if size == "smoke" else "")))


def limits_kept(claims: list[Claim]) -> str:
    """Return how many runs went over a limit: of policies with a δ, beside what it allows, and of the others."""
    counts = [claim.limits for claim in claims if claim.limits is not None]
    promised, others = ([one for one in counts if (one.delta > 0.0) == some] for some in (True, False))
    words = []
    if promised:
        expected = sum(count.delta * count.runs for count in promised)
        words.append(f"{over_limits(promised, 'that promise safety')}; δ allows {expected:,.1f} on average.")
    if others:
        words.append(f"{over_limits(others, 'with settings that state no δ')}.")
    return " ".join(words)


def over_limits(counts: list[LimitCount], which: str) -> str:
    """Return the runs and rounds over a limit."""
    over, runs, rounds_over, rounds = (sum(column) for column in list(zip(*counts, strict=True))[:4])
    return f"{over:,} of {runs:,} runs {which} went over a limit ({rounds_over:,} of {rounds:,} rounds)"


def must_hold(claims: list[Claim]) -> str:
    """Return whether the claims that must hold do, and which do not."""
    must = [claim for claim in claims if claim.must_hold]
    broken = [claim for claim in must if claim.verdict == FAILS]
    if not broken:
        return f"All {len(must)} claims that must hold do." if must else ""
    named = "; ".join(f"{place_of(claim)}: {claim.name}: {shown(claim.value)}" for claim in broken[:NAMED])
    more = f"; and {len(broken) - NAMED} more" if len(broken) > NAMED else ""
    return f"{len(broken)} of {len(must)} claims that must hold do not: {named}{more}."


def place_of(claim: Claim) -> str:
    """Return the experiment and the preset of a claim."""
    return f"{claim.experiment}, preset {claim.preset}" if claim.preset else claim.experiment


def whole(claims: list[Claim]) -> bool:
    """Say whether everything holds that must."""
    return not any(claim.must_hold and claim.verdict == FAILS for claim in claims)


def claims_of(sections: list[Section]) -> list[Claim]:
    """Return all claims."""
    return [claim for section in sections for claim in section.claims]


def shown(value: float | str) -> str:
    """Return a claim's value as people read it."""
    return value if isinstance(value, str) else f"{value:,.6g}"


def described(section: Section) -> str:
    """Return what is played, and from which random numbers."""
    runs = len(next(iter(section.results.values())).runs)
    own = section.experiment.preset_words.get(section.preset, "")
    beside = f" Stored: {REPOSITORY}, commit {LAST_COMMIT[:7]}, mean ± standard deviation." if compared(section) else ""
    return " ".join(filter(None, (section.experiment.words, own, f"Seed {SEED}, runs 0 to {runs - 1}."))) + beside


def rows_of(section: Section) -> list[list[str]]:
    """Return the table under a figure: what was played, what came out, how fast."""
    rows = []
    for result in section.results.values():
        settings = dict(result.manifest["cell"])
        policy = settings.pop("policy")
        settings.pop("preset")
        last, rounds = result.regret[:, -1], int(result.rounds[-1])
        speed = rounds * len(result.runs) / max(result.manifest["seconds"], 1e-9)
        stored = stored_of(result)
        known = [f"{stored.mean:,.0f} ± {stored.spread:,.0f}", f"{last.mean() / stored.mean:.3f}"] if stored else []
        rows.append(
            [
                policy,
                ", ".join(f"{'τ' if name == 'tau' else name} = {value}" for name, value in settings.items()),
                f"{last.mean():,.0f} ± {last.std():,.0f}",
                *(known or (["", ""] if compared(section) else [])),
                f"{int((result.violations > 0).sum()):,}",
                f"{int(result.violations.sum()):,}",
                f"{len(result.runs)} × {rounds:,}",
                f"{result.manifest['seconds']:.1f}",
                f"{speed / 1e6:.1f}",
            ]
        )
    return rows


def stored_of(result: Result) -> Stored | None:
    """Return what the authors stored of a curve, if it is of their settings and of their size."""
    cell = result.manifest["cell"]
    if cell["preset"] != "authors" or int(result.rounds[-1]) != ROUNDS:
        return None
    limit = cell["tau"] if isinstance(cell["tau"], float) else None
    return STORED.get((cell["policy"], cell.get("d", 0), limit))


def compared(section: Section) -> bool:
    """Say whether stored regrets stand beside ours."""
    return any(stored_of(result) for result in section.results.values())


def headings(section: Section) -> list[str]:
    """Return the heads of that table."""
    known = ["stored", "ratio"] if compared(section) else []
    counts = ["runs over a limit", "rounds over a limit"]
    return ["policy", "settings", "final regret", *known, *counts, "runs × rounds", "seconds", "Mrounds/s"]
