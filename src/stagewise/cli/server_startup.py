"""The work of `stagewise serve`: open the store, the experiments and the keys, and serve.

`start` is the command's options by name.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import typer

from stagewise import __version__
from stagewise.cli.console import get_actor
from stagewise.cli.problem_file import load_problem_file
from stagewise.files.tables import read_table
from stagewise.launch.decision_log import Log, select_learnable
from stagewise.launch.doctor.doctor import check_log
from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_name
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.timing import parse_seconds
from stagewise.server.access_keys import AccessKeys
from stagewise.server.audit.log_reader import count_offline_rows
from stagewise.server.controls import parse_mode
from stagewise.server.decision_server import DecisionServer, warm_up
from stagewise.server.event_log import LOG, Event
from stagewise.server.experiments import check_names
from stagewise.server.messages import MAX_BATCH_SIZE, Conflict
from stagewise.server.offline_log import DECODE_PART, OfflineLog, check_rows, describe_log_conflict
from stagewise.server.store.base import Store
from stagewise.server.store.migrate import open_store, parse_file_path
from stagewise.server.web.app import HttpSettings
from stagewise.server.web.http_server import serve
from stagewise.server.web.page.sessions import parse_origin
from stagewise.server.web.requests import RateLimit
from stagewise.server.webhooks.endpoints import load_endpoints

STARTING_MESSAGE = "Starting; the first start compiles machine code, which takes some ten seconds"
SLOW_SECONDS = 3.0  # seconds before the message above is printed
WORKER_STORE = "STAGEWISE_WORKER_STORE"  # the variable in which a worker gets the store's address
EMPTY_MESSAGE = "no problem is given and the store holds no experiment; give a TOML file"


def run_server(start: Any) -> None:
    """Serve until stopped; all options are checked before anything is written."""
    is_worker = WORKER_STORE in os.environ
    start.store = os.environ.get(WORKER_STORE, start.store)
    problems, settings = load_problems(start), check_options(start)
    retention = None if start.retention is None else parse_seconds(start.retention, "--retention")
    webhooks = [] if start.webhooks is None else load_endpoints(start.webhooks)
    logs = load_offline_logs(start, problems)
    store = open_checked_store(start, problems)
    server = DecisionServer(
        store, alone=parse_file_path(start.store) is not None, feedback_timeout=start.feedback_timeout,
        max_age=start.max_age, read_log=read_log, webhooks=webhooks, retention=retention,
    )  # fmt: skip
    keys = AccessKeys(store)
    stop_others: list[Callable[[], None]] = []
    notice = threading.Timer(SLOW_SECONDS, typer.echo, (STARTING_MESSAGE,))
    notice.start()

    async def prepare() -> None:
        for name, problem in problems.items():
            await open_experiment(server, name, problem, start)
        for name, log in logs.items():
            await learn_offline_log(server, name, log)
        if server.retention is not None:
            server.retention.check()
        for name in server.experiments():
            await asyncio.to_thread(warm_up, server.experiment(name).current)

    def on_start(address: str) -> None:
        notice.cancel()
        if is_worker:
            return
        deliver_keys(create_first_keys(keys), start.key_file)
        print_startup(start, address, server)
        if start.workers > 1:
            stop_others.append(start_workers(start, address))
        if start.demo:
            from stagewise.cli.demo import start_demo_users

            names = [start.name or path.stem for path in start.problems]
            stop_others.append(start_demo_users(names, address, server, keys))

    try:
        serve(
            server, start.host, start.port, reuse_port=start.workers > 1 or is_worker, keys=keys,
            settings=settings, prepare=prepare, on_start=on_start,
        )  # fmt: skip
    finally:
        notice.cancel()
        for stop in stop_others:
            stop()


def check_options(start: Any) -> HttpSettings:
    """Return the settings of the HTTP server; raise StagewiseError for an option that cannot be used."""
    settings = HttpSettings(
        rate=RateLimit() if start.rate is None else parse_rate(start.rate),
        log=not start.quiet,
        public="" if start.public_url is None else parse_origin(start.public_url),
    )
    if start.mode is not None or start.share is not None:
        parse_mode(start.mode or "live", start.share)
    for option, seconds in (("--feedback-timeout", start.feedback_timeout), ("--max-age", start.max_age)):
        if seconds is not None and not seconds > 0:
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, option, seconds, "a number of seconds above 0")
    if start.workers > 1 and parse_file_path(start.store) is not None:
        raise InvalidProblem(
            ErrorCode.CONFLICTING_OPTIONS,
            "--workers is {workers}, and the store is a file, which one process can write; give a PostgreSQL store",
            workers=start.workers,
        )
    return settings


def start_workers(start: Any, address: str) -> Callable[[], None]:
    """Start the other processes of `--workers`; one that ends is started again. Return what stops them."""
    command = [sys.executable, "-m", "stagewise", "serve", "--quiet"]
    command += ["--host", start.host, "--port", str(urlsplit(address).port), "--max-age", str(start.max_age)]
    options = {"feedback-timeout": start.feedback_timeout, "public-url": start.public_url, "rate": start.rate}
    options |= {"webhooks": start.webhooks, "retention": start.retention}
    command += [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    environment = {**os.environ, WORKER_STORE: start.store}  # the address may have a password: not on a command line
    running = [subprocess.Popen(command, env=environment) for _ in range(start.workers - 1)]
    stopping = threading.Event()

    def watch() -> None:
        while not stopping.wait(1.0):
            for place, process in enumerate(running):
                if process.poll() is not None:
                    running[place] = subprocess.Popen(command, env=environment)

    watcher = threading.Thread(target=watch, name="workers", daemon=True)
    watcher.start()

    def stop() -> None:
        stopping.set()
        watcher.join()
        for process in running:
            process.terminate()
        for process in running:
            process.wait()

    return stop


def parse_rate(per_second: float) -> RateLimit:
    """Return the rate limit; a full batch is always allowed at once."""
    if not 0.0 < per_second < float("inf"):
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "--rate", per_second, "a number of calls a second above 0")
    return RateLimit(per_second, max(2.0 * per_second, MAX_BATCH_SIZE))


def load_offline_logs(start: Any, problems: dict[str, Problem]) -> dict[str, OfflineLog]:
    """Return the offline log by the name of its experiment, if one is given; the doctor checks it."""
    if start.log is None:
        if start.columns or start.ignore_checks or start.as_of is not None:
            raise InvalidProblem(
                ErrorCode.MISSING_VALUE, "--columns, --ignore-checks and --as-of apply to a log; add --log"
            )
        return {}
    if len(problems) != 1:
        problem_count = "--log applies to one problem, and {problems_count} problem files are given; give one"
        raise InvalidProblem(ErrorCode.CONFLICTING_OPTIONS, problem_count, problems_count=len(problems))
    ((name, problem),) = problems.items()
    return {name: load_new_log(name, problem, start)}


def load_new_log(name: str, problem: Problem, start: Any) -> OfflineLog:
    """Return the rows of a log for a store; a log that the store already has is not checked again."""
    first, decisions = find_learned_log(start.store, name)
    table = read_table(start.log)
    log = build_offline_log(problem, table, start.columns, start.as_of)
    digest = None if first is None else bytes.fromhex(DECODE_PART(first.body).log)
    if (decisions and first is None) or digest not in (None, log.digest):
        conflict = describe_log_conflict(name, len(log.actions), None if first is None else first.body)
        raise Conflict(ErrorCode.CONFLICT, "{problem}", problem=conflict)
    if digest is None:
        check_log_agrees(problem, table, start.columns, start.ignore_checks, start.as_of)
        check_rows(problem, log)
    return log


def read_log(
    problem: Problem, source: Any, columns: Mapping[str, str], accept: Sequence[str], now: Any = None
) -> OfflineLog:
    """Return the rows of a log that can be learned; raise InvalidOutcome if the log contradicts the problem.

    Args:
        problem: The problem of the experiment.
        source: A file, or columns by name.
        columns: Column mapping: names of the problem to columns of the log.
        accept: Checks to report without failing.
        now: When the log was read; None: at its last row. Rows whose windows were open then are left out.
    """
    table = read_table(source)
    log = build_offline_log(problem, table, columns, now)
    check_log_agrees(problem, table, columns, accept, now)
    return log


def build_offline_log(problem: Problem, source: Any, columns: Mapping[str, str], now: Any = None) -> OfflineLog:
    """Return the rows of a log that can be learned, as the server stores them."""
    log, notes = select_learnable(Log.of(source, problem, columns=columns), now)
    numbers = {name: (log.numbers[:, i] + 0.0).tolist() for i, name in enumerate(problem.numbers)}  # no -0.0
    segments = {name: texts.tolist() for name, texts in log.segments.items()}
    columns_by_name = dict(zip(problem.signals, log.values.T, strict=True))
    values = {name: (columns_by_name[name] + 0.0).tolist() for name in problem.reported}
    scores = {name: (values + 0.0).tolist() for name, values in log.scores.items()}
    at = None if log.at is None else [None if np.isnan(time) else float(time) for time in log.at]
    return OfflineLog(
        [problem.action_names[i] for i in log.actions], {**numbers, **scores, **segments}, values, at, tuple(notes)
    )


def check_log_agrees(
    problem: Problem, source: Any, columns: Mapping[str, str], accept: Sequence[str], as_of: Any = None
) -> None:
    """Raise InvalidOutcome if a log, read at a time, contradicts the problem."""
    report = check_log(source, problem, columns=columns, ignore_checks=accept, as_of=as_of)
    contradictions = [finding for finding in report.findings if finding.verdict == "contradicts"]
    if contradictions:
        first, others = contradictions[0], len(contradictions) - 1
        more = f" (and {others} more; `stagewise doctor` lists all)" if others else ""
        template = "the log contradicts the problem: {name}: {finding}{more}; {remedy}, or ignore {name!r}"
        data = {"name": str(first.check), "finding": first.message, "more": more, "remedy": first.remedy}
        raise InvalidOutcome(ErrorCode.LOG_CONTRADICTS_PROBLEM, template, **data)


async def learn_offline_log(server: DecisionServer, name: str, log: OfflineLog) -> None:
    """Learn a log before the first request, and print its notes."""
    response = await server.learn_log(name, log, get_actor(), "stagewise serve --log")
    await server.learned(name, response.row)
    for note in response.notes if response.new else ():
        typer.echo(f"{name}: {note}")


def open_checked_store(start: Any, problems: dict[str, Problem]) -> Store:
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
        raise InvalidProblem(ErrorCode.MISSING_VALUE, EMPTY_MESSAGE)


def load_problems(start: Any) -> dict[str, Problem]:
    """Return the problems by the names of their experiments."""
    if start.name is not None and len(start.problems) > 1:
        fact = "--name is {name!r}, and {problems_count} files are given; --name applies to one file"
        raise InvalidProblem(ErrorCode.CONFLICTING_OPTIONS, fact, name=start.name, problems_count=len(start.problems))
    found: dict[str, Problem] = {}
    for path in start.problems:
        name = start.name or path.stem
        if name in found:
            twice = "two files have the name {name!r}; every experiment needs a unique name"
            raise InvalidProblem(ErrorCode.DUPLICATE_NAME, twice, name=name)
        found[name] = load_problem_file(path)
        check_new_names(check_name(name, "the experiment's name"), found[name], start.store)
    return found


def check_new_names(name: str, problem: Problem, store: str) -> None:
    """Reject reserved names, except of an experiment that already exists."""
    try:
        check_names(name, problem)
    except InvalidProblem:
        with open_if_exists(store) as opened:
            if opened is None or name not in opened.experiments():
                raise


@contextmanager
def open_if_exists(address: str) -> Iterator[Store | None]:
    """Open a store, or give None where it would have to be created."""
    file = parse_file_path(address)
    if file is not None and not file.exists():
        yield None
    else:
        with closing(open_store(address)) as store:
            yield store


def find_learned_log(address: str, name: str) -> tuple[Event | None, int]:
    """Return the first row of an experiment's offline log, or None, and its number of decisions."""
    with open_if_exists(address) as store:
        return (None, 0) if store is None else (store.find(name, LOG, "1"), store.head(name).decision_count)


async def open_experiment(server: DecisionServer, name: str, problem: Problem, start: Any) -> None:
    """Open an experiment, or a new version of it; the mode changes only if one is given."""
    actor, reason = get_actor(), "stagewise serve"
    is_new = name not in server.experiments()
    first_mode = "shadow" if start.mode == "canary" else start.mode or "live"
    await server.open(name, problem, actor, reason, first_mode, revert=start.revert)
    experiment = server.experiment(name)
    differs = experiment.mode != start.mode or (start.share or 1.0) != experiment.share
    if start.mode is not None and differs and (start.mode == "canary" or not is_new):
        await server.set_mode(name, str(start.mode), start.share, actor, reason)


def print_startup(start: Any, address: str, server: DecisionServer) -> None:
    for name in server.experiments():
        experiment = server.experiment(name)
        killed = f"; {experiment.killed.message}" if experiment.killed else ""
        count = count_offline_rows(server.store, name)
        rows = f", {count:,} rows of an offline log" if count else ""
        actions = f"{len(experiment.problem.action_names)} actions"
        typer.echo(f"{name}: {experiment.mode}, version {experiment.version}, {actions}{rows}{killed}")
    typer.echo(f"stagewise {__version__}; store: {hide_password(start.store)}")
    typer.echo(f"Serving the API and the page at {address}; Ctrl+C stops the server")


def hide_password(address: str) -> str:
    """Return a store's address without its password, which can be in two places."""
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
