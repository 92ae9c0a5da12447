"""The work of `stagewise serve`: open the store, the experiments and the keys, and serve."""

import asyncio
import getpass
import os
import threading
from collections.abc import Callable, Collection
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import typer

from stagewise import __version__
from stagewise.cli.log_import import build_offline_log, check_log, read_log
from stagewise.cli.problem_file import load_problem_file
from stagewise.cli.server_settings import build_settings
from stagewise.files.tables import read_table
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_name
from stagewise.problem.errors import ErrorCode, InvalidProblem, StagewiseError
from stagewise.server.access_keys import AccessKeys
from stagewise.server.audit.log_reader import count_offline_rows
from stagewise.server.controls import parse_mode
from stagewise.server.decision_server import DecisionServer, warm_up
from stagewise.server.event_log import LOG, Event
from stagewise.server.experiments import check_names
from stagewise.server.messages import Conflict
from stagewise.server.offline_log import OfflineLog, check_rows, describe_log_conflict, get_log_digest
from stagewise.server.store.base import Store
from stagewise.server.store.factory import open_store, parse_file_path
from stagewise.server.web.http_server import serve

STARTING_MESSAGE = "Starting; the first start compiles machine code, which takes some ten seconds"
SLOW_SECONDS = 3.0  # seconds before the message above is printed
EMPTY_MESSAGE = "no problem is given and the store holds no experiment; give a TOML file"


class LogOptions(NamedTuple):
    """The options of an offline log."""

    path: Path | None
    columns: dict[str, str]
    accept: list[str]
    now: datetime | float | None
    """When it was read."""


class ServeOptions(NamedTuple):
    """The options of `stagewise serve`."""

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
    feedback_timeout: float | None = None
    max_age: float = 60.0
    public_url: str | None = None
    rate: float | None = None
    offline: LogOptions | None = None
    revert: bool = False


def run_server(start: ServeOptions) -> None:
    """Serve until stopped; all options are checked before anything is written."""
    problems = load_problems(start)
    settings = build_settings(start.rate, start.public_url, start.quiet)
    if start.mode is not None or start.share is not None:
        parse_mode(start.mode or "live", start.share)
    if start.feedback_timeout is not None and not start.feedback_timeout > 0:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "--feedback-timeout is {feedback_timeout:g}; it must be a number of seconds above 0",
            feedback_timeout=start.feedback_timeout,
        )
    if not start.max_age > 0:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "--max-age is {max_age:g}; it must be a number of seconds above 0",
            max_age=start.max_age,
        )
    logs = load_offline_logs(start, problems)
    file, store = parse_file_path(start.store), open_checked_store(start, problems)
    server = DecisionServer(
        store, alone=file is not None, feedback_timeout=start.feedback_timeout, max_age=start.max_age, read_log=read_log
    )
    keys = AccessKeys(store)
    stop_users: list[Callable[[], None]] = []
    notice = threading.Timer(SLOW_SECONDS, typer.echo, (STARTING_MESSAGE,))
    notice.start()

    async def prepare() -> None:
        for name, problem in problems.items():
            await open_experiment(server, name, problem, start)
        for name, log in logs.items():
            await learn_offline_log(server, name, log)
        for name in server.experiments():
            await asyncio.to_thread(warm_up, server.experiment(name).current)

    def on_start(address: str) -> None:
        notice.cancel()
        deliver_keys(create_first_keys(keys), start.keys)
        print_startup(start, address, server)
        if start.demo:
            stop_users.append(start_demo(start, address, server, keys))

    try:
        serve(server, start.host, start.port, keys=keys, settings=settings, prepare=prepare, on_start=on_start)
    finally:
        notice.cancel()
        for stop in stop_users:
            stop()


def load_offline_logs(start: ServeOptions, problems: dict[str, Problem]) -> dict[str, OfflineLog]:
    """Return the offline log by the name of its experiment, if one is given; the doctor checks it."""
    if start.offline is None:
        return {}
    path, columns, accept, now = start.offline
    if path is None:
        if columns or accept or now is not None:
            raise InvalidProblem(
                ErrorCode.MISSING_VALUE, "--columns, --ignore-checks and --as-of apply to a log; add --log"
            )
        return {}
    if len(problems) != 1:
        raise InvalidProblem(
            ErrorCode.CONFLICTING_OPTIONS,
            "--log applies to one problem, and {problems_count} problem files are given; give one problem file",
            problems_count=len(problems),
        )
    ((name, problem),) = problems.items()
    return {name: load_new_log(start.store, name, problem, start.offline)}


def load_new_log(address: str, name: str, problem: Problem, options: LogOptions) -> OfflineLog:
    """Return the rows of a log for a store; a log that the store already has is not checked again."""
    first, decisions = find_learned_log(address, name)
    table = read_table(options.path)
    log = build_offline_log(problem, table, options.columns, options.now)
    digest = None if first is None else get_log_digest(first)
    if (decisions and first is None) or digest not in (None, log.digest):
        raise Conflict(
            ErrorCode.CONFLICT,
            "{problem}",
            problem=describe_log_conflict(name, len(log.actions), None if first is None else first.body),
        )
    if digest is None:
        check_log(problem, table, options.columns, options.accept)
        check_rows(problem, log)
    return log


async def learn_offline_log(server: DecisionServer, name: str, log: OfflineLog) -> None:
    """Learn a log before the first request, and print its notes."""
    response = await server.learn_log(name, log, get_actor(), "stagewise serve --log")
    await server.learned(name, response.row)
    for note in response.notes if response.new else ():
        typer.echo(f"{name}: {note}")


def open_checked_store(start: ServeOptions, problems: dict[str, Problem]) -> Store:
    """Open the store, if there will be an experiment; otherwise create nothing."""
    file = parse_file_path(start.store)
    if file is not None and not file.exists():
        check_experiments(problems)
    store = open_store(start.store)
    try:
        check_experiments([*problems, *store.experiments()])
    except StagewiseError:
        store.close()
        raise
    return store


def check_experiments(names: Collection[str]) -> None:
    """Raise InvalidProblem if there is no experiment to serve."""
    if not names:
        raise InvalidProblem(ErrorCode.MISSING_VALUE, "{problem}", problem=EMPTY_MESSAGE)


def load_problems(start: ServeOptions) -> dict[str, Problem]:
    """Return the problems by the names of their experiments."""
    if start.name is not None and len(start.problems) > 1:
        raise InvalidProblem(
            ErrorCode.CONFLICTING_OPTIONS,
            "--name is {name!r}, and {problems_count} files are given; --name applies to one file",
            name=start.name,
            problems_count=len(start.problems),
        )
    found: dict[str, Problem] = {}
    for path in start.problems:
        name = start.name or path.stem
        if name in found:
            raise InvalidProblem(
                ErrorCode.DUPLICATE_NAME,
                "two files have the name {name!r}; every experiment needs a unique name",
                name=name,
            )
        found[name] = load_problem_file(path)
        check_new_names(check_name(name, "the experiment's name"), found[name], start.store)
    return found


def check_new_names(name: str, problem: Problem, store: str) -> None:
    """Reject reserved names, except of an experiment that already exists."""
    try:
        check_names(name, problem)
    except InvalidProblem:
        if name not in list_experiments(store):
            raise


def list_experiments(address: str) -> list[str]:
    """Return the experiments of a store, without creating it."""
    file = parse_file_path(address)
    if file is not None and not file.exists():
        return []
    with closing(open_store(address)) as store:
        return store.experiments()


def find_learned_log(address: str, name: str) -> tuple[Event | None, int]:
    """Return the first row of an experiment's offline log, or None, and its number of decisions."""
    file = parse_file_path(address)
    if file is not None and not file.exists():
        return None, 0
    with closing(open_store(address)) as store:
        return store.find(name, LOG, "1"), store.head(name).decision_count


async def open_experiment(server: DecisionServer, name: str, problem: Problem, start: ServeOptions) -> None:
    """Open an experiment, or a new version of it; the mode changes only if one is given."""
    actor, reason = get_actor(), "stagewise serve"
    is_new = name not in server.experiments()
    first_mode = "shadow" if start.mode == "canary" else start.mode or "live"
    await server.open(name, problem, actor, reason, first_mode, revert=start.revert)
    experiment = server.experiment(name)
    differs = experiment.mode != start.mode or (start.share or 1.0) != experiment.share
    if start.mode is not None and differs and (start.mode == "canary" or not is_new):
        await server.set_mode(name, str(start.mode), start.share, actor, reason)


def get_actor() -> str:
    """Return the actor for the log: the user of the command line."""
    try:
        return f"{getpass.getuser()}, on the command line"
    except (KeyError, OSError, ImportError):  # the user has no name, as in some containers
        return f"user {os.getuid()}, on the command line"


def print_startup(start: ServeOptions, address: str, server: DecisionServer) -> None:
    """Print the experiments and the address."""
    for name in server.experiments():
        experiment = server.experiment(name)
        killed = f"; {experiment.killed.message}" if experiment.killed else ""
        count = count_offline_rows(server.store, name)
        rows = f", {count:,} rows of an offline log" if count else ""
        actions = f"{len(experiment.problem.actions)} actions"
        typer.echo(f"{name}: {experiment.mode}, version {experiment.version}, {actions}{rows}{killed}")
    typer.echo(f"stagewise {__version__}; store: {hide_password(start.store)}")
    typer.echo(f"Serving the API and the page at {address}; Ctrl+C stops the server")


def hide_password(address: str) -> str:
    """Return a store's address without its password, which can be in two places.

    >>> hide_password("postgresql://ada:secret@db/stagewise?password=secret")
    'postgresql://ada@db/stagewise'
    """
    scheme, mark, rest = address.partition("://")
    user, at, location = rest.rpartition("@")
    return f"{scheme}{mark}{user.partition(':')[0]}{at}{location.partition('?')[0]}" if mark else address


def create_first_keys(keys: AccessKeys) -> list[str]:
    """Create the first keys; if two servers start at once, one of them does."""
    try:
        return keys.create_initial_keys()
    except StagewiseError:
        keys.refresh()
        if not keys.list_keys():
            raise
        return []


def deliver_keys(keys: list[str], path: Path | None) -> None:
    """Write keys to a file that only this user can read, or print them if there is no file or it fails."""
    if keys and path is not None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                if path.is_file():  # an existing file may have been readable by everybody
                    path.chmod(0o600)
                file.writelines(f"{key}\n" for key in keys)
            typer.echo(f"Keys of the first start: {path}")
            return
        except OSError as error:
            typer.echo(f"stagewise: {path}: {error.strerror}; the keys are printed instead", err=True)
    if keys:
        typer.echo("Keys, printed only once (Authorization: Bearer …, and for the page's login):")
    for key in keys:
        typer.echo(f"  {key}")


def start_demo(start: ServeOptions, address: str, server: DecisionServer, keys: AccessKeys) -> Callable[[], None]:
    """Start simulated users; return the function that stops them."""
    from stagewise.cli.demo import start_demo_users

    return start_demo_users([start.name or path.stem for path in start.problems], address, server, keys)


def format_time(at: int) -> str:
    """Return a time in microseconds as text."""
    return f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M}"
