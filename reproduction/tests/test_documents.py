"""What documents say of the reproduction is what the code has."""

import re
from pathlib import Path

from stagewise_reproduction.beyond.comparison.plan import UNSAFE
from stagewise_reproduction.catalogue import CATALOGUE
from stagewise_reproduction.coverage import COVERAGE, HEADINGS, list_rows
from stagewise_reproduction.report_text import build_table
from stagewise_reproduction.stored import FIGURE_1_COMMIT, LAST_COMMIT, REPOSITORY, STORED

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs" / "explanation" / "results.md").read_text(encoding="utf-8")
PAGES = [ROOT / "docs" / "how-to" / "reproduce-the-paper.md", ROOT / "docs" / "reference" / "reproduction.md"]
REPRODUCE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
COMPARISON = (ROOT / "docs" / "explanation" / "comparison.md").read_text(encoding="utf-8")
POLICIES = ("LC-LUCB", "Safe-LTS")


def cells_of(line: str) -> list[str]:
    return [cell.strip().strip("*") for cell in line.strip("|").split("|")]


def test_no_document_counts_claims() -> None:
    """Their number changes with every experiment; the report counts them."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*/README.md"))]
    assert len(pages) > 30
    assert [page.name for page in pages if re.search(r"\b\d+ claims\b", page.read_text(encoding="utf-8"))] == []


def test_every_experiment_and_every_claim_of_the_text_is_listed() -> None:
    listed = set(re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\| (`.*?) \|", REPRODUCE, re.MULTILINE))))
    assert set(CATALOGUE) <= listed
    assert "\n".join(build_table(list(HEADINGS), list_rows())) in REPRODUCE
    assert {name for one in COVERAGE for name in one.experiments} <= set(CATALOGUE)
    assert any(not one.experiments for one in COVERAGE)  # some claims cannot be checked


def test_stored_numbers_are_the_code_s_and_have_their_source() -> None:
    for source in (REPOSITORY, LAST_COMMIT, FIGURE_1_COMMIT[:7], "RandomT1000000", "inference"):
        assert source in REPRODUCE
    position = {(10, t): f"Figure 1, d = 10, τ = {t:g}" for t in (0.2, 0.5, 0.8)}
    position |= {(5, t): f"Appendix B, d = 5, τ = {t:g}" for t in (0.2, 0.5, 0.8)}
    position |= {(d, None): f"Figure 2, d = {d}" for d in (5, 10)}
    for (dimension, threshold), name in position.items():
        line = next(line for line in REPRODUCE.splitlines() if line.startswith(f"| {name} |"))
        stored = [STORED[policy, dimension, threshold] for policy in POLICIES]
        assert cells_of(line)[1::2] == [f"{one.mean:,.0f} ± {one.deviation:,.0f}" for one in stored]
    assert len(STORED) == 2 * len(position)


def test_the_figure_stands_beside_numbers_of_its_preset() -> None:
    section = RESULTS.partition("## The paper, reproduced")[2].partition("\n## ")[0]
    picture, table = section.index("pictures/figure-1.png"), section.index("| τ |")
    assert picture < table
    assert "preset authors" in section[:picture]  # what stands for the picture where it cannot be seen
    assert "--preset authors" in section[picture:table]
    assert {"text", "ours"}.isdisjoint(re.findall(r"preset (\w+)", section[picture:table]))
    for threshold in (0.2, 0.5, 0.8):
        line = next(line for line in section.splitlines() if line.startswith(f"| {threshold:g} |"))
        assert cells_of(line)[1::2] == [f"{STORED[policy, 10, threshold].mean:,.0f}" for policy in POLICIES]


def test_the_comparison_names_every_run_over_a_limit() -> None:
    """Its table has a row a policy: name, regret, standard error, runs and rounds over a limit, time."""
    settings = [cells_of(line) for line in COMPARISON.splitlines() if line.count("|") == 7 and re.search(r"\d", line)]
    assert len(settings) > 40
    assert all((over == "0") == (broken == "0") for _, _, _, over, broken, _ in settings)
    over = {name: (int(runs), rounds) for name, _, _, runs, rounds, _ in settings if runs != "0" and name not in UNSAFE}
    assert over == {"CAPS, mixtures": (1, "72,950")}
    assert "**One run of a policy that promises safety went over its limit** (CAPS on mixtures" in COMPARISON
    assert "No round of any policy" not in README + RESULTS
    assert "one of the ten runs of CAPS on mixtures did" in RESULTS
