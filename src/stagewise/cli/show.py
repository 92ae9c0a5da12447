"""Descriptions of folders and files that stagewise wrote."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from stagewise.agent import replica, storage
from stagewise.agent.agent import Agent
from stagewise.files.paths import check_fits_memory, get_irregular_kind, parse_path, read_toml
from stagewise.files.tables import decode_parquet
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import format_count, format_path
from stagewise.reports.certificate import SimulationCertificate
from stagewise.reports.certificate_text import format_headline
from stagewise.reports.output_files import MANIFEST
from stagewise.reports.plot_style import write_figure
from stagewise.reports.result import Result
from stagewise.reports.result_plot import format_table, plot_results

SWEEP_PATTERN = "*/*/*/*/" + MANIFEST  # policy, world, limits, seed
CONTINUE_HINT = "run the same command again to continue"
SQLITE_MAGIC = b"SQLite format 3\0"
STORE_TABLES = {"events", "heads", "secrets"}
KNOWN_KINDS = "results, comparisons, sweeps, certificates, reproductions, saved agents, server stores and logs"


def describe_path(path: Path) -> str:
    """Return the description of a path, by the first of DESCRIBERS that knows what it is."""
    path = parse_path(path)
    try:
        kind = get_irregular_kind(path)
        if not path.exists():
            raise InvalidFile(ErrorCode.FILE_NOT_FOUND, "{path} does not exist", path=format_path(path))
    except OSError as error:
        raise InvalidFile.cannot_be(ErrorCode.FILE_UNREADABLE, path, "read", error) from None
    if kind not in (None, "a folder"):
        reason = f"it is {kind}, and must be a folder or a regular file"
        raise InvalidFile.cannot_be(ErrorCode.FILE_WRONG_KIND, path, "shown", reason)
    for describe in DESCRIBERS:
        description = describe(path)
        if description is not None:
            return description.rstrip("\n")
    reason = f"stagewise did not write it; `show` reads {KNOWN_KINDS}"
    raise InvalidFile.cannot_be(ErrorCode.FILE_WRONG_KIND, path, "shown", reason)


def describe_result(path: Path) -> str | None:
    """Describe a folder that `simulate` wrote."""
    if not (path / MANIFEST).is_file():
        return None
    result = Result.load(path)
    with suppress(InvalidFile):  # the folder may not be writable
        write_figure(result.plot(), path / "result.png")
    limits = ", ".join(f"{name} {value:g}" for name, value in result.manifest["thresholds"].items()) or "none"
    return f"{result!r}\nLimits: {limits}\n\n{format_table({result.manifest['policy']['kind']: result})}"


def describe_comparison(path: Path) -> str | None:
    """Describe a folder that `compare` wrote, or any folder of results."""
    manifests = sorted(path.glob(f"*/{MANIFEST}"))
    if not manifests:
        return None
    results = {file.parent.name: Result.load(file.parent) for file in manifests}
    title = f"{format_count(len(results), 'result')} below this folder"
    if (path / "comparison.md").is_file():
        title = "A comparison of 1 policy" if len(results) == 1 else f"A comparison of {len(results)} policies"
        with suppress(InvalidFile):  # the folder may not be writable
            write_figure(plot_results(results), path / "comparison.png")
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
    content = read_json(file) if file.suffix == ".json" and file.is_file() else None
    if path.is_file() and not (isinstance(content, dict) and {"verdict", "violations", "plan"} <= set(content)):
        return None
    if not file.is_file():
        return None
    certificate = SimulationCertificate.load(file)
    page = file.with_name("certificate.html")
    page_line = f"\nThe page: {page}" if page.is_file() else ""
    headline = f"{certificate.verdict}: {format_headline(certificate.content)}"
    return f"{headline}{page_line}\nVerify it with: stagewise certify --verify {file}"


def describe_certificates(path: Path) -> str | None:
    """Describe a folder of certificates."""
    files = sorted(path.glob("*/certificate.json"))
    if not files:
        return None
    certificates = {file.parent.name: SimulationCertificate.load(file) for file in files}
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
    """Return the number of runs in a folder of parts, by its name."""
    numbers = [int(word) for word in name.split("-")[1:] if word.isdigit()]
    return numbers[1] - numbers[0] + 1 if len(numbers) == 2 else 1


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; None if it is not one."""
    check_fits_memory(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def get_format(path: Path) -> str:
    """Return the stagewise format that a JSON file declares, or an empty string."""
    content = read_json(path) if path.is_file() and path.suffix.lower() == ".json" else None
    name = content.get("format") if isinstance(content, dict) else None
    return name if isinstance(name, str) and name.startswith("stagewise-") else ""


def describe_agent(path: Path) -> str | None:
    """Describe a saved agent."""
    if get_format(path) != storage.FORMAT:
        return None
    agent = Agent.load(path)
    name, count = f" {agent.name!r}" if agent.name else "", format_count(agent.snapshot().version, "outcome")
    title = f"A saved agent{name}: {format_count(agent.round, 'decision')}, {count} learned"
    problem = getattr(agent.policy, "problem", None) or agent.policy
    return f"{title}\n{problem}\nIn Python: sw.Agent.load({str(path)!r}) continues it"


def describe_snapshot(path: Path) -> str | None:
    """Describe a policy snapshot."""
    if get_format(path) != replica.FORMAT:
        return None
    content = read_json(path)
    kind, learned = content.get("policy", {}).get("kind"), content.get("learned")
    return f"A snapshot of {kind}, {learned} outcomes learned\nIn Python: sw.Snapshot.from_bytes(…) reads it"


def describe_store(path: Path) -> str | None:
    """Describe the store of a server."""
    if not path.is_file() or read_first_bytes(path, len(SQLITE_MAGIC)) != SQLITE_MAGIC:
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            tables = {name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables >= STORE_TABLES:
                return None
            heads = opened.execute(
                "SELECT experiment, seq, decision_count FROM heads WHERE experiment <> ''"
            ).fetchall()
    except sqlite3.Error:
        return None
    rows = [f"  {name!r}: {format_count(seq, 'row')}, {format_count(count, 'decision')}" for name, seq, count in heads]
    next_step = (
        f"stagewise serve --store {path} serves it; stagewise audit verify {path} checks its log; "
        f"stagewise keys list {path} lists its keys"
    )
    return "\n".join([f"The store of a server, {format_count(len(rows), 'experiment')}:", *rows, next_step])


def describe_json(path: Path) -> str | None:
    """Describe any other JSON file that stagewise wrote, or a folder with one."""
    files = [path] if path.is_file() else sorted(path.glob("*.json"))
    formats = {file.name: name for file in files if (name := get_format(file))}
    if not formats:
        return None
    return "\n".join(f"{file} was written by stagewise, in the format {name!r}" for file, name in formats.items())


def describe_result_file(path: Path) -> str | None:
    """Describe a file of a result."""
    manifest = read_json(path.parent / MANIFEST) if path.is_file() and (path.parent / MANIFEST).is_file() else None
    is_listed = isinstance(manifest, dict) and path.name in (MANIFEST, *dict(manifest.get("files") or {}))
    return f"A file of a result; describe the result with: stagewise show {path.parent}" if is_listed else None


def describe_log(path: Path) -> str | None:
    """Describe a log that `stagewise audit export` wrote."""
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return None
    names = read_column_names(path)
    if not {"decision_id", "propensity"} <= set(names):
        return None
    columns = f", with {', '.join(names[:12])}{', …' * (len(names) > 12)}"
    return f"A log of decisions in the format of `stagewise audit export`{columns}"


def read_column_names(path: Path) -> list[str]:
    """Return the column names of a Parquet file; empty for any other file."""
    check_fits_memory(path)
    try:
        return list(decode_parquet(path.read_bytes()).column_names)
    except ValueError:
        return []


def describe_toml(path: Path) -> str | None:
    """Describe a TOML file: a problem or a simulation."""
    if path.suffix.lower() != ".toml" or not path.is_file():
        return None
    content: dict[str, Any] = read_toml(path)
    if "simulation" in content:
        is_sweep = "worlds" in content or "sweep" in content
        command = "sweep" if is_sweep else "compare" if "policies" in content else "simulate"
        return f"A simulation; run it with: stagewise {command} {path} --out FOLDER"
    if {"actions", "limits"} <= set(content) or "problem" in content:
        return f"A problem; stagewise problem {path} prints its models, stagewise serve {path} serves it"
    return None


def read_first_bytes(path: Path, count: int) -> bytes:
    """Return the first bytes of a file."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


DESCRIBERS: tuple[Callable[[Path], str | None], ...] = (
    describe_result,
    describe_certificate,
    describe_reproduction,
    describe_comparison,
    describe_sweep,
    describe_unfinished,
    describe_certificates,
    describe_agent,
    describe_snapshot,
    describe_store,
    describe_result_file,
    describe_json,
    describe_log,
    describe_toml,
)
