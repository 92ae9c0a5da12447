"""Descriptions of files: saved agents, server stores, logs and TOML files."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from stagewise.cli.show_folders import read_json
from stagewise.problem.formatting import format_count
from stagewise.reports.output_files import MANIFEST

SQLITE_MAGIC = b"SQLite format 3\0"
STORE_TABLES = {"events", "heads", "secrets"}
FORMAT_PREFIX = "stagewise-"


def get_format(path: Path) -> str:
    """Return the stagewise format that a JSON file declares, or an empty string."""
    content = read_json(path) if path.is_file() and path.suffix.lower() == ".json" else None
    name = content.get("format") if isinstance(content, dict) else None
    return name if isinstance(name, str) and name.startswith(FORMAT_PREFIX) else ""


def describe_agent(path: Path) -> str | None:
    """Describe a saved agent."""
    from stagewise.agent.agent import Agent
    from stagewise.agent.storage import FORMAT

    if get_format(path) != FORMAT:
        return None
    agent = Agent.load(path)
    name = f" {agent.name!r}" if agent.name else ""
    decisions, outcomes = format_count(agent.round, "decision"), format_count(agent.snapshot().version, "outcome")
    problem = getattr(agent.policy, "problem", None)
    return "\n".join(
        [
            f"A saved agent{name}: {decisions}, {outcomes} learned",
            str(agent.policy if problem is None else problem),
            f"In Python: sw.Agent.load({str(path)!r}) continues it",
        ]
    )


def describe_snapshot(path: Path) -> str | None:
    """Describe a policy snapshot."""
    from stagewise.agent.replica import FORMAT

    if get_format(path) != FORMAT:
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
    rows = [
        f"  {name!r}: {format_count(rows, 'row')}, {format_count(decisions, 'decision')}"
        for name, rows, decisions in heads
    ]
    return "\n".join(
        [
            f"The store of a server, {format_count(len(rows), 'experiment')}:",
            *rows,
            f"stagewise serve --store {path} serves it; stagewise audit verify {path} checks its log; "
            f"stagewise keys list {path} lists its keys",
        ]
    )


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
    import io

    from arro3.io import read_parquet

    from stagewise.files.paths import check_fits_memory
    from stagewise.reports.output_files import MAGIC

    check_fits_memory(path)
    content = path.read_bytes()
    if not (content.startswith(MAGIC) and content.endswith(MAGIC)):
        return []
    try:
        return list(read_parquet(io.BytesIO(content)).schema.names)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a Rust panic is not an Exception
        return []


def describe_toml(path: Path) -> str | None:
    """Describe a TOML file: a problem or a simulation."""
    from stagewise.files.paths import read_toml

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
