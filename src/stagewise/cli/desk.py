"""What `stagewise serve` starts: a store, a desk, its experiments and keys, and maybe simulated users."""

import asyncio
import getpass
import os
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import typer

from stagewise import __version__
from stagewise.cli.declared import problem_in
from stagewise.cli.desk_settings import check_personalizer, settings_of
from stagewise.cli.offline import check_log, read_log, rows_in_log
from stagewise.files.tables import table_at
from stagewise.policies.problem import Problem
from stagewise.problem.declared import title
from stagewise.problem.errors import InvalidProblem, StagewiseError
from stagewise.service.audit.reading import log_rows_of
from stagewise.service.changes import check_names
from stagewise.service.controls import mode_of
from stagewise.service.desk import Desk
from stagewise.service.errors import Conflict
from stagewise.service.keys import Keys
from stagewise.service.offline import OfflineLog, check_rows, known_digest, why_not
from stagewise.service.records import LOG, Event
from stagewise.service.store.opened import file_of, open_store
from stagewise.service.store.store import Store
from stagewise.service.warming import warm
from stagewise.service.web.serving import serve

STARTING = "Starting; the first time, kernels are compiled, which takes some ten seconds of a processor"
SLOW = 3.0  # seconds after which whoever waits is told why
NOTHING = "no problem is given and the store holds no experiment; give a TOML file"


class Offline(NamedTuple):
    """A log to begin with."""

    path: Path | None
    names: dict[str, str]
    accept: list[str]
    now: datetime | float | None
    """When it was read."""


class Start(NamedTuple):
    """What was asked for."""

    problems: list[Path]
    store: str
    host: str
    port: int
    mode: str | None
    share: float | None
    name: str | None
    demo: bool
    keys: Path | None
    quiet: bool
    dry_after: float | None = None
    max_age: float = 60.0
    public_url: str | None = None
    rate: float | None = None
    personalizer: str | None = None
    offline: Offline | None = None
    revert: bool = False


def run(start: Start) -> None:
    """Serve until somebody stops it. All that can be refused is refused before anything is written."""
    problems = named_problems(start)
    settings = settings_of(start.rate, start.personalizer, start.public_url, start.quiet)
    if start.mode is not None or start.share is not None:
        mode_of(start.mode or "live", start.share)
    if start.dry_after is not None and not start.dry_after > 0:
        raise InvalidProblem(f"--dry-after is {start.dry_after:g}; it must be seconds, above 0")
    if not start.max_age > 0:
        raise InvalidProblem(f"--max-age is {start.max_age:g}; it must be seconds, above 0")
    logs = offline_logs(start, problems)
    file, store = file_of(start.store), opened_store(start, problems)
    desk = Desk(store, alone=file is not None, dry_after=start.dry_after, max_age=start.max_age, read_log=read_log)
    keys = Keys(store)
    users: list[Callable[[], None]] = []
    waiting = threading.Timer(SLOW, typer.echo, (STARTING,))
    waiting.start()

    async def prepare() -> None:
        for name, problem in problems.items():
            await opened(desk, name, problem, start)
        for name, log in logs.items():
            await loaded(desk, name, log)
        for name in desk.experiments():
            await asyncio.to_thread(warm, desk.experiment(name).current)

    def started(address: str) -> None:
        waiting.cancel()
        hand_over(first_keys(keys), start.keys)
        greet(start, address, desk)
        if start.demo:
            users.append(begin_demo(start, address, desk, keys))

    try:
        serve(desk, start.host, start.port, keys=keys, settings=settings, prepare=prepare, started=started)
    finally:
        waiting.cancel()
        for stop in users:
            stop()


def offline_logs(start: Start, problems: dict[str, Problem]) -> dict[str, OfflineLog]:
    """Return the log to begin with, by the name of its experiment, where there is one; the doctor may refuse it."""
    if start.offline is None:
        return {}
    path, names, accept, now = start.offline
    if path is None:
        if names or accept or now is not None:
            raise InvalidProblem("--names, --accept and --now are of a log; give it with --log")
        return {}
    if len(problems) != 1:
        raise InvalidProblem(f"--log is of one problem, and {len(problems)} problem files are given; give one")
    ((name, problem),) = problems.items()
    return {name: new_log(start.store, name, problem, start.offline)}


def new_log(address: str, name: str, problem: Problem, asked: Offline) -> OfflineLog:
    """Return the rows of a log, which a store can take; one that it has was checked when it was first given."""
    first, decisions = begun_in(address, name)
    columns = table_at(asked.path)
    log = rows_in_log(problem, columns, asked.names, asked.now)
    known = None if first is None else known_digest(first)
    if (decisions and first is None) or known not in (None, log.digest):
        raise Conflict(why_not(name, len(log.actions), None if first is None else first.body))
    if known is None:
        check_log(problem, columns, asked.names, asked.accept)
        check_rows(problem, log)
    return log


async def loaded(desk: Desk, name: str, log: OfflineLog) -> None:
    """Have a log learned before anybody is answered, and say what was left out of it."""
    told = await desk.learn_log(name, log, actor_of(), "stagewise serve --log")
    await desk.learned(name, told.row)
    for note in told.notes if told.new else ():
        typer.echo(f"{name}: {note}")


def opened_store(start: Start, problems: dict[str, Problem]) -> Store:
    """Open the store, where there will be something to serve; none is made for what is refused."""
    file = file_of(start.store)
    if file is not None and not file.exists():
        check_served(start, {*problems})
    store = open_store(start.store)
    try:
        check_served(start, {*problems, *store.experiments()})
    except StagewiseError:
        store.close()
        raise
    return store


def check_served(start: Start, names: set[str]) -> None:
    """Refuse to serve nothing, and routes for an experiment that there will not be."""
    if not names:
        raise InvalidProblem(NOTHING)
    check_personalizer(start.personalizer, names)


def named_problems(start: Start) -> dict[str, Problem]:
    """Return the problems by the names of their experiments."""
    if start.name is not None and len(start.problems) > 1:
        raise InvalidProblem(f"--name is {start.name!r} and there are {len(start.problems)} files; it names one")
    found: dict[str, Problem] = {}
    for path in start.problems:
        name = start.name or path.stem
        if name in found:
            raise InvalidProblem(f"two files are called {name!r}; experiments need names of their own")
        found[name] = problem_in(path)
        check_new(title(name, "the experiment's name"), found[name], start.store)
    return found


def check_new(name: str, problem: Problem, store: str) -> None:
    """Refuse names that mean something else by HTTP, but for an experiment that is there: a log keeps its name."""
    try:
        check_names(name, problem)
    except InvalidProblem:
        if name not in held_in(store):
            raise


def held_in(address: str) -> list[str]:
    """Return the experiments of a store; one that is not there is not made."""
    file = file_of(address)
    if file is not None and not file.exists():
        return []
    with closing(open_store(address)) as store:
        return store.experiments()


def begun_in(address: str, name: str) -> tuple[Event | None, int]:
    """Return the first part of the log that an experiment has learned, if it has, and how many decisions it made."""
    file = file_of(address)
    if file is not None and not file.exists():
        return None, 0
    with closing(open_store(address)) as store:
        return store.find(name, LOG, "1"), store.head(name).places


async def opened(desk: Desk, name: str, problem: Problem, start: Start) -> None:
    """Open an experiment, or a new version of it; the mode changes only where one was asked for."""
    actor, reason = actor_of(), "stagewise serve"
    fresh = name not in desk.experiments()
    plain = "shadow" if start.mode == "canary" else start.mode or "live"
    await desk.open(name, problem, actor, reason, plain, revert=start.revert)
    ours = desk.experiment(name)
    asked = start.mode is not None and (ours.mode != start.mode or (start.share or 1.0) != ours.share)
    if asked and (start.mode == "canary" or not fresh):
        await desk.set_mode(name, str(start.mode), start.share, actor, reason)


def actor_of() -> str:
    """Return who started it."""
    try:
        return f"{getpass.getuser()}, on the command line"
    except (KeyError, OSError, ImportError):  # a user without a name, as in a container
        return f"user {os.getuid()}, on the command line"


def greet(start: Start, address: str, desk: Desk) -> None:
    """Say what is served, and where."""
    for name in desk.experiments():
        ours = desk.experiment(name)
        killed = f"; {ours.killed}" if ours.killed else ""
        count = log_rows_of(desk.store, name)
        rows = f", {count:,} rows of a log learned" if count else ""
        typer.echo(f"{name}: {ours.mode}, version {ours.version}, {len(ours.problem.actions)} actions{rows}{killed}")
    told = f"stagewise {__version__}, with its log in {shown_store(start)}"
    typer.echo(f"{told}: the desk is at {address}, and so is its page; Ctrl+C stops it")


def shown_store(start: Start) -> str:
    """Return a store's address without its password, which may stand in two places.

    >>> start = Start([], "", "", 0, None, None, None, False, None, False)
    >>> shown_store(start._replace(store="postgresql://ada:secret@db/desk?password=secret"))
    'postgresql://ada@db/desk'
    """
    scheme, mark, rest = start.store.partition("://")
    who, at, where = rest.rpartition("@")
    return f"{scheme}{mark}{who.partition(':')[0]}{at}{where.partition('?')[0]}" if mark else start.store


def first_keys(keys: Keys) -> list[str]:
    """Make the keys to begin with; of two desks that start at once, one makes them."""
    try:
        return keys.first()
    except StagewiseError:
        keys.refresh()
        if not keys.listed():
            raise
        return []


def hand_over(fresh: list[str], path: Path | None) -> None:
    """Show keys this once, or write them to a file that nobody else can read; where that fails, they are shown."""
    if fresh and path is not None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                if path.is_file():  # one that was there may have been everybody's
                    path.chmod(0o600)
                file.writelines(f"{key}\n" for key in fresh)
            typer.echo(f"The keys of the first start are in {path}")
            return
        except OSError as error:
            typer.echo(f"stagewise: {path}: {error.strerror}; so the keys are shown here", err=True)
    if fresh:
        typer.echo("The keys, shown this once (Authorization: Bearer …, and for the page's login):")
    for key in fresh:
        typer.echo(f"  {key}")


def begin_demo(start: Start, address: str, desk: Desk, keys: Keys) -> Callable[[], None]:
    """Let simulated users ask and answer; return what stops them."""
    from stagewise.cli.demo import begin

    return begin([start.name or path.stem for path in start.problems], address, desk, keys)


def day(at: int) -> str:
    """Return a day as people write it."""
    return f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M}"
