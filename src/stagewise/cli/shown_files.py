"""What `stagewise show` says of single files: saved agents, desk stores, logs, and the files that people write."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from stagewise.cli.shown_folders import plain
from stagewise.problem.words import several
from stagewise.reports.sealed import MANIFEST

SQLITE = b"SQLite format 3\0"
TABLES = {"events", "heads", "secrets"}  # of a desk's store
OURS = "stagewise-"


def form_of(path: Path) -> str:
    """Return the format that a JSON file declares; "": none of ours."""
    told = plain(path) if path.is_file() and path.suffix.lower() == ".json" else None
    form = told.get("format") if isinstance(told, dict) else None
    return form if isinstance(form, str) and form.startswith(OURS) else ""


def agent(path: Path) -> str | None:
    """A saved agent."""
    from stagewise.files.paths import content_of
    from stagewise.policies.agent.saved import FORMAT, read

    if form_of(path) != FORMAT:
        return None
    saved = read(path, content_of(path))
    name = f" {saved.name!r}" if saved.name else ""
    told = [f"A saved agent{name}: {several(saved.round, 'round')} decided, {several(saved.learned, 'lesson')} learned"]
    problem = getattr(saved.policy, "problem", None)
    told.append(str(saved.policy if problem is None else problem))
    return "\n".join(
        [*told, f"In Python: sw.Agent.load({str(path)!r}) goes on; .report() and .health() say how it does"]
    )


def snapshot(path: Path) -> str | None:
    """A snapshot of a learner."""
    from stagewise.policies.agent.snapshot import FORMAT

    if form_of(path) != FORMAT:
        return None
    told = plain(path)
    kind, learned = told.get("policy", {}).get("kind"), told.get("learned")
    return f"A snapshot of {kind}, {learned} lessons learned\nIn Python: sw.Snapshot.from_bytes(…) reads it"


def store(path: Path) -> str | None:
    """The store of a desk."""
    if not path.is_file() or first_bytes(path, len(SQLITE)) != SQLITE:
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            tables = {name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables >= TABLES:
                return None
            heads = opened.execute("SELECT experiment, seq, places FROM heads WHERE experiment <> ''").fetchall()
    except sqlite3.Error:
        return None
    rows = [f"  {name!r}: {several(rows, 'row')}, {several(places, 'decision')}" for name, rows, places in heads]
    return "\n".join(
        [
            f"The store of a desk, {several(len(rows), 'experiment')}:",
            *rows,
            f"stagewise serve --store {path} serves it; stagewise audit verify {path} checks its log; "
            f"stagewise keys list {path} lists its keys",
        ]
    )


def written(path: Path) -> str | None:
    """Any other JSON file that says it is ours, or a folder with one."""
    files = [path] if path.is_file() else sorted(path.glob("*.json"))
    found = {file.name: form for file in files if (form := form_of(file))}
    if not found:
        return None
    return "\n".join(f"{name} was written by stagewise, as {form!r}" for name, form in found.items())


def part(path: Path) -> str | None:
    """One of the files of a result."""
    beside = plain(path.parent / MANIFEST) if path.is_file() and (path.parent / MANIFEST).is_file() else None
    named = isinstance(beside, dict) and path.name in (MANIFEST, *dict(beside.get("files") or {}))
    return f"A part of a result: stagewise show {path.parent} tells all of it" if named else None


def log(path: Path) -> str | None:
    """A log that `audit export` wrote."""
    if path.suffix.lower() not in (".parquet", ".dsjson") or not path.is_file():
        return None
    names = columns_of(path)
    if path.suffix.lower() == ".parquet" and not {"decision_id", "propensity"} <= set(names):
        return None
    rows = f", with {', '.join(names[:12])}{', …' * (len(names) > 12)}" if names else ""
    return f"A log of decisions as `stagewise audit export` writes it{rows}"


def columns_of(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet file; none where it is no such file."""
    import io

    from arro3.io import read_parquet

    from stagewise.files.paths import check_fits
    from stagewise.reports.sealed import MAGIC

    check_fits(path)
    content = path.read_bytes()
    if not (content.startswith(MAGIC) and content.endswith(MAGIC)):
        return []
    try:
        return list(read_parquet(io.BytesIO(content)).schema.names)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic is no Exception
        return []


def toml(path: Path) -> str | None:
    """A file that people write: a problem, or a simulation."""
    from stagewise.files.toml import toml_of

    if path.suffix.lower() != ".toml" or not path.is_file():
        return None
    told: dict[str, Any] = toml_of(path)
    if "simulation" in told:
        command = "sweep" if "worlds" in told or "sweep" in told else "compare" if "policies" in told else "simulate"
        return f"A simulation to be played: stagewise {command} {path} --out FOLDER"
    if {"actions", "limits"} <= set(told) or "problem" in told:
        return (
            f"A problem, written by hand: stagewise problem {path} says what is made of it, stagewise serve serves it"
        )
    return None


def first_bytes(path: Path, count: int) -> bytes:
    """Return how a file begins."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""
