"""The claims of the paper's text, and the experiment that checks each; or why it cannot be checked."""

from typing import NamedTuple

LINEAR = ("figure-1", "figure-linear-d3", "figure-linear-d5")
ARMS = ("figure-4", "figure-4-appendix")


class Coverage(NamedTuple):
    """One claim of the text."""

    where: str
    claim: str
    experiments: tuple[str, ...]  # that check it; none: it cannot be checked
    how: str  # how it is checked, or why it cannot be


COVERAGE = (
    Coverage(
        "4.5, Figure 1; Appendix B",
        "LC-LUCB regrets less than Safe-LTS for every τ and d",
        LINEAR,
        "mean regrets at the end; the curves are drawn, not tested",
    ),
    Coverage("4.5, Figure 1; Appendix B", "the constraint is satisfied", LINEAR, "runs over a limit are counted"),
    Coverage(
        "4.5, Figure 1; Appendix B",
        "the problem gets harder as τ falls",
        LINEAR,
        "of regret relative to the optimum (E67); regret itself stands beside it",
    ),
    Coverage(
        "Figure 1, caption",
        "an optimal unconstrained action costs less than .561",
        ("figure-1",),
        "computed from the instance",
    ),
    Coverage(
        "Figure 1, caption",
        "at τ = .8 the cost settles below the threshold",
        ("figure-1",),
        "at the size full: near the cost of the best action",
    ),
    Coverage("4.5, Figure 2", "LC-LUCB regrets less than Safe-LTS", ("figure-2",), "mean regrets at the end, paired"),
    Coverage(
        "5.4, Figure 3",
        "OPB's regret grows inversely with the safety gap",
        ("figure-3",),
        "that it grows as τ falls; not how fast",
    ),
    Coverage("5.4, Figure 4; Appendix H", "OPB's regret grows as τ falls", ARMS, "mean regrets at the end"),
    Coverage("5.4, Figure 4; Appendix H", "the constraint is satisfied", ARMS, "runs over a limit are counted"),
    Coverage(
        "5.4, Figure 4; Appendix H",
        "OPB reaches the optimal reward",
        ARMS,
        "at least 95 % of it in the last tenth of the rounds; half of it where the best arm costs exactly τ",
    ),
    Coverage(
        "4.2, regret of LC-LUCB",
        "a bound on the regret",
        LINEAR,
        "preset text: the largest regret of the runs, against the bound with its constant corrected (E11)",
    ),
    Coverage(
        "4.3, lower bound", "some instance costs every algorithm so much", ("lower-bound",), "OPB on both instances"
    ),
    Coverage(
        "Figures 1 and 2, d = 5 and 10",
        "the curves",
        ("figure-1", "figure-linear-d5", "figure-2"),
        "preset authors, size full: final regrets beside those stored in the authors' repository",
    ),
    Coverage(
        "Appendix B, d = 3; Figures 3 and 4",
        "the curves",
        (),
        "the text prints no numbers, and the authors' repository stores none of these runs",
    ),
    Coverage("4.5", "λ = 1 in all experiments", (), "the authors' code has .1 (E62); the curves' files are not public"),
    Coverage("1; 5.4", "experiments on OPLB", (), "the paper shows none, only OPB's (E66); multi-constraint does"),
)
HEADINGS = ("where", "the text's claim", "checked in", "how, or why not")


def list_rows() -> list[list[str]]:
    """Return the table's rows."""
    return [[one.where, one.claim, ", ".join(one.experiments) or "cannot be checked", one.how] for one in COVERAGE]
