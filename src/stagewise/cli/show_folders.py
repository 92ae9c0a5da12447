"""Descriptions of folders: results, comparisons, sweeps, certificates and reproductions."""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from stagewise.cli.show_command import write_result_plot
from stagewise.problem.formatting import format_count
from stagewise.reports.certificate import Certificate
from stagewise.reports.certificate_text import format_headline
from stagewise.reports.output_files import MANIFEST
from stagewise.reports.plot_style import write_figure
from stagewise.reports.result import Result
from stagewise.reports.result_plot import format_table, plot_results

SWEEP_PATTERN = "*/*/*/*/" + MANIFEST  # policy, world, limits, seed
TABLE_FILE = "comparison.md"
CONTINUE_HINT = "run the same command again to continue"


def describe_result(path: Path) -> str | None:
    """Describe a folder that `simulate` wrote."""
    if not (path / MANIFEST).is_file():
        return None
    result = Result.load(path)
    try_redraw(lambda: write_result_plot(result, path))
    limits = ", ".join(f"{name} {value:g}" for name, value in result.manifest["thresholds"].items()) or "none"
    return f"{result!r}\nLimits: {limits}\n\n{format_table({result.manifest['policy']['kind']: result})}"


def describe_comparison(path: Path) -> str | None:
    """Describe a folder that `compare` wrote, or any folder of results."""
    manifests = sorted(path.glob(f"*/{MANIFEST}"))
    if not manifests:
        return None
    results = {file.parent.name: Result.load(file.parent) for file in manifests}
    title = f"{format_count(len(results), 'result')} below this folder"
    if (path / TABLE_FILE).is_file():
        title = "A comparison of 1 policy" if len(results) == 1 else f"A comparison of {len(results)} policies"
        try_redraw(lambda: write_figure(plot_results(results), path / "comparison.png"))
    return f"{title}{format_unfinished(path, 1)}\n\n{format_table(results)}"


def describe_sweep(path: Path) -> str | None:
    """Describe a folder that `sweep` wrote."""
    manifests = sorted(path.glob(SWEEP_PATTERN))
    if not manifests:
        return None
    results = {", ".join(file.parent.relative_to(path).parts): Result.load(file.parent) for file in manifests}
    return f"A sweep of {format_count(len(results), 'cell')}{format_unfinished(path, 4)}\n\n{format_table(results)}"


def describe_certificate(path: Path) -> str | None:
    """Describe a folder or file that `certify` wrote."""
    file = path / "certificate.json" if path.is_dir() else path
    if not file.is_file() or (path.is_file() and not is_certificate(path)):
        return None
    certificate = Certificate.load(file)
    page = file.with_name("certificate.html")
    page_line = f"\nThe page: {page}" if page.is_file() else ""
    headline = f"{certificate.verdict}: {format_headline(certificate.content)}"
    return f"{headline}{page_line}\nVerify it with: stagewise certify --verify {file}"


def describe_certificates(path: Path) -> str | None:
    """Describe a folder of certificates."""
    files = sorted(path.glob("*/certificate.json"))
    if not files:
        return None
    certificates = {file.parent.name: Certificate.load(file) for file in files}
    width = max(map(len, certificates))
    rows = [f"  {name:{width}}  {one.verdict}: {format_headline(one.content)}" for name, one in certificates.items()]
    return "\n".join([f"{format_count(len(rows), 'certificate')}:", *rows])


def describe_reproduction(path: Path) -> str | None:
    """Describe a folder that `reproduce` wrote."""
    runs = sum(1 for _ in path.glob(f"results/*/*/parts/*/{MANIFEST}"))
    if not runs:
        return None
    claims = read_json(path / "claims.json")
    if not isinstance(claims, list):
        return f"An unfinished reproduction: {format_count(runs, 'run')} stored; {CONTINUE_HINT}"
    counts = Counter(str(claim.get("verdict")) for claim in claims if isinstance(claim, dict))
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    names = {claim.get("experiment") for claim in claims if isinstance(claim, dict)}
    title = f"A reproduction of {format_count(len(names), 'experiment')}, {format_count(len(claims), 'claim')}"
    return f"{title}: {verdicts}\nThe report: {path / 'report.html'}"


def describe_unfinished(path: Path) -> str | None:
    """Describe the folder of an interrupted command."""
    plans = [path / "plan.json", *path.glob("*/plan.json"), *path.glob("*/*/*/*/plan.json")]
    if not any(plan.is_file() for plan in plans):
        return None
    stored = sum(count_runs(part.parent.name) for part in path.glob(f"**/parts/*/{MANIFEST}"))
    return f"Unfinished: {format_count(stored, 'run')} stored; {CONTINUE_HINT}"


def format_unfinished(path: Path, depth: int) -> str:
    """Return how many results of a comparison or sweep are unfinished, as text."""
    plans = path.glob("/".join(["*"] * depth) + "/plan.json")
    count = sum(not plan.with_name(MANIFEST).is_file() for plan in plans)
    return f"; {count} more unfinished, {CONTINUE_HINT}" if count else ""


def count_runs(name: str) -> int:
    """Return the number of runs in a folder of parts, by its name.

    >>> count_runs("run-000003"), count_runs("runs-000000-000099")
    (1, 100)
    """
    numbers = [int(word) for word in name.split("-")[1:] if word.isdigit()]
    return numbers[1] - numbers[0] + 1 if len(numbers) == 2 else 1


def try_redraw(draw: Any) -> None:
    """Draw again, unless the folder is not writable."""
    from stagewise.problem.errors import InvalidFile

    with suppress(InvalidFile):
        draw()


def is_certificate(path: Path) -> bool:
    """Return whether a file looks like a certificate."""
    content = read_json(path) if path.suffix == ".json" else None
    return isinstance(content, dict) and {"verdict", "violations", "plan"} <= set(content)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; None if it is not one."""
    from stagewise.files.paths import check_fits_memory

    check_fits_memory(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
