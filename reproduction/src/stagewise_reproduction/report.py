"""The content of the report for each experiment, independent of its format."""

from typing import NamedTuple

from stagewise.reports.result import Result
from stagewise_reproduction.cell import SEED
from stagewise_reproduction.claim import FAILS, HOLDS, Claim, LimitCount
from stagewise_reproduction.experiment import Experiment
from stagewise_reproduction.stored import LAST_COMMIT, REPOSITORY, ROUNDS, STORED, StoredResult

TITLE = "Contextual bandits with stage-wise constraints, reproduced"
PAPER = (
    "Pacchiano, Ghavamzadeh, Bartlett, JMLR 26 (2025): its experiments, and others, by stagewise. "
    "“Claims of the text” says which of its claims are checked here."
)
MAX_NAMED = 3  # failed claims that the headline lists
SMOKE_NOTE = "This size only tests that everything works; judge the claims at the size quick or full."


class Section(NamedTuple):
    """One experiment under one preset."""

    experiment: Experiment
    preset: str
    picture: str
    results: dict[str, Result]
    claims: list[Claim]

    @property
    def title(self) -> str:
        """The heading, with the preset where the experiment has several."""
        return f"{self.experiment.title} — {self.label}" if self.label else self.experiment.title

    @property
    def label(self) -> str:
        """The label of a figure: its preset, where the experiment has several."""
        return "" if len(self.experiment.presets) == 1 else f"preset {self.preset}"


def summarize(size: str, claims: list[Claim]) -> str:
    """Return the headline: limits, required claims, all claims."""
    failing, holding = (sum(claim.verdict == word for claim in claims) for word in (FAILS, HOLDS))
    rest = len(claims) - holding - failing
    words = f"Of all {len(claims)} claims {holding} hold, {rest} with a remark, {failing} do not; size {size}."
    return " ".join(
        filter(
            None, (summarize_limits(claims), summarize_required(claims), words, SMOKE_NOTE if size == "smoke" else "")
        )
    )


def summarize_limits(claims: list[Claim]) -> str:
    """Return how many runs went over a limit: of policies with a δ, with the allowed number, and of the others."""
    counts = [claim.limits for claim in claims if claim.limits is not None]
    with_delta, others = ([one for one in counts if (one.delta > 0.0) == some] for some in (True, False))
    words = []
    if with_delta:
        expected = sum(count.delta * count.runs for count in with_delta)
        words.append(f"{format_limit_counts(with_delta, 'that promise safety')}; δ allows {expected:,.1f} on average.")
    if others:
        words.append(f"{format_limit_counts(others, 'with settings that state no δ')}.")
    return " ".join(words)


def format_limit_counts(counts: list[LimitCount], which: str) -> str:
    """Return the runs and rounds over a limit."""
    over, runs, rounds_over, rounds = (sum(column) for column in list(zip(*counts, strict=True))[:4])
    return f"{over:,} of {runs:,} runs {which} went over a limit ({rounds_over:,} of {rounds:,} rounds)"


def summarize_required(claims: list[Claim]) -> str:
    """Return whether the required claims hold, and which do not."""
    must = [claim for claim in claims if claim.must_hold]
    failed = [claim for claim in must if claim.verdict == FAILS]
    if not failed:
        return f"All {len(must)} claims that must hold do." if must else ""
    listed = "; ".join(
        f"{format_source(claim)}: {claim.name}: {format_value(claim.value)}" for claim in failed[:MAX_NAMED]
    )
    more = f"; and {len(failed) - MAX_NAMED} more" if len(failed) > MAX_NAMED else ""
    return f"{len(failed)} of {len(must)} claims that must hold do not: {listed}{more}."


def format_source(claim: Claim) -> str:
    """Return the experiment and the preset of a claim."""
    return f"{claim.experiment}, preset {claim.preset}" if claim.preset else claim.experiment


def all_required_hold(claims: list[Claim]) -> bool:
    """Return whether all required claims hold."""
    return not any(claim.must_hold and claim.verdict == FAILS for claim in claims)


def list_claims(sections: list[Section]) -> list[Claim]:
    """Return all claims."""
    return [claim for section in sections for claim in section.claims]


def format_value(value: float | str) -> str:
    """Return a claim's value as text."""
    return value if isinstance(value, str) else f"{value:,.6g}"


def describe_section(section: Section) -> str:
    """Return the description of a section, with its random seed."""
    runs = len(next(iter(section.results.values())).runs)
    preset_text = section.experiment.preset_words.get(section.preset, "")
    stored_note = (
        f" Stored: {REPOSITORY}, commit {LAST_COMMIT[:7]}, mean ± standard deviation." if has_stored(section) else ""
    )
    return (
        " ".join(filter(None, (section.experiment.words, preset_text, f"Seed {SEED}, runs 0 to {runs - 1}.")))
        + stored_note
    )


def build_rows(section: Section) -> list[list[str]]:
    """Return the table under a figure: settings, results, speed."""
    rows = []
    for result in section.results.values():
        settings = dict(result.manifest["cell"])
        policy = settings.pop("policy")
        settings.pop("preset")
        last, rounds = result.regret[:, -1], int(result.rounds[-1])
        speed = rounds * len(result.runs) / max(result.manifest["seconds"], 1e-9)
        stored = find_stored(result)
        stored_columns = (
            [f"{stored.mean:,.0f} ± {stored.deviation:,.0f}", f"{last.mean() / stored.mean:.3f}"] if stored else []
        )
        rows.append(
            [
                policy,
                ", ".join(f"{'τ' if name == 'tau' else name} = {value}" for name, value in settings.items()),
                f"{last.mean():,.0f} ± {last.std():,.0f}",
                *(stored_columns or (["", ""] if has_stored(section) else [])),
                f"{int((result.violations > 0).sum()):,}",
                f"{int(result.violations.sum()):,}",
                f"{len(result.runs)} × {rounds:,}",
                f"{result.manifest['seconds']:.1f}",
                f"{speed / 1e6:.1f}",
            ]
        )
    return rows


def find_stored(result: Result) -> StoredResult | None:
    """Return the authors' stored result of a curve, if settings and size are theirs."""
    cell = result.manifest["cell"]
    if cell["preset"] != "authors" or int(result.rounds[-1]) != ROUNDS:
        return None
    limit = cell["tau"] if isinstance(cell["tau"], float) else None
    return STORED.get((cell["policy"], cell.get("d", 0), limit))


def has_stored(section: Section) -> bool:
    """Return whether stored regrets are shown beside ours."""
    return any(find_stored(result) for result in section.results.values())


def get_headings(section: Section) -> list[str]:
    """Return the headings of that table."""
    stored_columns = ["stored", "ratio"] if has_stored(section) else []
    counts = ["runs over a limit", "rounds over a limit"]
    return ["policy", "settings", "final regret", *stored_columns, *counts, "runs × rounds", "seconds", "Mrounds/s"]
