"""Every policy of the showcase certified, each in a folder of its own, with an index page: `make certificates`."""

import html
import json
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from stagewise.reports.certificate import Certificate
from stagewise.reports.certificate_page import STYLE
from stagewise.reports.certificate_words import headline
from stagewise.reports.evidence import SUPPORTED
from stagewise.reports.files import write_text
from stagewise.simulation.certify import certify
from stagewise_reproduction.instances import slug
from stagewise_reproduction.showcase import CASES, ROUNDS, Case


class Outcome(NamedTuple):
    """What came out, and what had to."""

    name: str
    expected: str
    verdict: str
    as_expected: bool


def certify_all(
    out: Path,
    *,
    runs: int,
    rounds: int = ROUNDS,
    confidence: float = 0.999,
    executor: Any = None,
    progress: bool = True,
) -> list[Outcome]:
    """Certify every case into a folder of its own, and write index.html and index.json."""
    certificates = {
        case.name: certify(
            case.policy,
            case.world,
            rounds=min(rounds, case.most[0]),
            runs=min(runs, case.most[1]),
            confidence=confidence,
            executor=executor,
            progress=progress,
            out=out / slug(case.name),
        )
        for case in CASES
    }
    outcomes = [outcome_of(case, certificates[case.name]) for case in CASES]
    write_text(out / "index.html", index(outcomes, certificates))
    write_text(out / "index.json", json.dumps([one._asdict() for one in outcomes], indent=1) + "\n")
    return outcomes


def outcome_of(case: Case, certificate: Certificate) -> Outcome:
    """Return whether the verdict is the one that is due."""
    right = certificate.holds if case.expected == SUPPORTED else certificate.verdict == case.expected
    return Outcome(case.name, case.expected, certificate.verdict, right)


def index(outcomes: list[Outcome], certificates: dict[str, Certificate]) -> str:
    """Return the page that leads to all certificates."""
    rows = "".join(
        f"<tr><td><a href='{slug(one.name)}/certificate.html'>{html.escape(one.name)}</a></td>"
        f"<td class={one.verdict}>{one.verdict}</td><td>{one.expected}</td>"
        f"<td>{html.escape(headline(certificates[one.name].content))}</td></tr>"
        for one in outcomes
    )
    wrong = sum(not one.as_expected for one in outcomes)
    words = "All verdicts are as they must be." if not wrong else f"{wrong} verdicts are not as they must be."
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'><link rel=icon href='data:,'>"
        f"<title>stagewise: safety certificates</title><style>{STYLE}</style></head><body>"
        "<h1>Safety certificates</h1><p>Does a policy keep its limits while it learns? Each page says what was "
        "promised, assumed, found and not tested. Those expected to be refuted are controls: a test that they "
        f"passed would prove nothing. <b>{words}</b></p><div class=scroll><table>"
        f"<tr><th>policy<th>verdict<th>expected<th>found</tr>{rows}"
        "</table></div></body></html>\n"
    )


def command(
    out: Annotated[Path, typer.Option(help="The folder for the certificates and their index.")],
    runs: Annotated[int, typer.Option(help="At most so many runs of each.")] = 4000,
) -> None:
    """Certify every policy on the paper's problems; fails unless those that must be refuted are, and no others."""
    outcomes = certify_all(out, runs=runs)
    for one in outcomes:
        typer.echo(f"{one.verdict:>10}  {one.name} (expected: {one.expected})")
    typer.echo(f"The index: {out / 'index.html'}")
    if not all(one.as_expected for one in outcomes):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(command)
