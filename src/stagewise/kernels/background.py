"""The process that compiles for this one: it makes machine code where it is kept, and this one loads it."""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from queue import Queue
from threading import Lock, RLock, Thread
from typing import Any

from stagewise.kernels import kept
from stagewise.kernels.interpreted import ALWAYS, LOCK, SETTING, Interpreted

RUN = "from stagewise.kernels.background import compile_requests; compile_requests()"
DONE, FAILED = b"d", b"f"
WAIT = 0.05  # seconds between two looks at who compiles
LOADING = RLock()  # held while machine code is loaded, and with it locks of Numba


class Compiler:
    """Asks one process beside this one to compile kernels, one after the other: they share what they call."""

    def __init__(self) -> None:
        self.requests: Queue[tuple[Interpreted, tuple[Any, ...]]] = Queue()
        self.lock = Lock()
        self.thread: Thread | None = None
        self.process: Any = None
        self.temporary: Path | None = None  # a folder of its own, where machine code cannot be kept

    def ask(self, wanted: Interpreted, signature: tuple[Any, ...]) -> None:
        """Have a kernel compiled for these arguments, and loaded."""
        self.requests.put((wanted, signature))
        with self.lock:
            if self.thread is None:
                self.thread = Thread(target=self.serve, name="stagewise-compile", daemon=True)
                self.thread.start()

    def serve(self) -> None:
        """Do what is asked, for as long as this process lives."""
        while True:
            self.load(*self.requests.get())
            self.requests.task_done()

    @property
    def is_idle(self) -> bool:
        """Whether all that was asked for is machine code."""
        return self.requests.unfinished_tasks == 0

    def load(self, wanted: Interpreted, signature: tuple[Any, ...]) -> None:
        """Have a kernel made, then load it; where no process can make it, it is compiled in this one."""
        kernel, code = wanted.kernel, wanted.kernel._cache
        folder = code._folder
        with suppress(OSError, EOFError, ValueError):
            self.make(pickle.dumps((wanted.origin, signature)), folder)
            if self.temporary is not None:
                code._folder = next((self.temporary / "stagewise").iterdir(), folder)
        try:
            with LOADING:
                kernel.compile(signature)
        except Exception:  # whatever is wrong with it: it stays interpreted, and the next kernel is compiled
            kernel._can_compile = True
        finally:
            code._folder = folder

    def make(self, request: bytes, folder: Path | None) -> None:
        """Send a request to the process that compiles, and wait for its answer."""
        if self.process is None:
            self.process = self.start(folder)
        self.process.stdin.write(len(request).to_bytes(8, "big") + request)
        if self.process.stdout.read(1) not in (DONE, FAILED):
            raise EOFError("the process that compiles has ended")

    def start(self, folder: Path | None) -> Any:
        """Start it, with this process's path and settings."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), SETTING: ALWAYS}
        if not kept.can_write(folder):
            self.temporary = Path(tempfile.mkdtemp(prefix="stagewise-"))
            environment["STAGEWISE_CACHE"] = str(self.temporary)
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        command = [sys.executable, "-P", "-c", RUN, *([] if self.temporary is None else [str(self.temporary)])]
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environment, bufsize=0)


COMPILER = Compiler()


def hold() -> None:
    """Wait until no thread interprets or loads a kernel: a forked process would find its locks held for ever."""
    LOCK.acquire()
    LOADING.acquire()


def release() -> None:
    """Go on after a fork."""
    LOADING.release()
    LOCK.release()


def forget() -> None:
    """Begin anew in a process that was forked: threads, pipes and folders stay with the other."""
    release()
    process = COMPILER.process
    if process is not None:
        process.stdin.close()
        process.stdout.close()
        process.returncode = 0  # it is no child of this one, which cannot wait for it
    COMPILER.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=forget)


def compile_requests() -> None:
    """Compile what a parent asks for until it ends; then remove the folder that it is given, if it is given one."""
    try:
        compile_all(os.getppid())
    finally:
        for folder in sys.argv[1:]:
            shutil.rmtree(folder, ignore_errors=True)


def compile_all(parent: int) -> None:
    """Compile what a parent asks for. What is made is kept for the next process too."""
    if hasattr(os, "nice"):
        os.nice(5)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while head := requests.read(8):
        origin, signature = pickle.loads(requests.read(int.from_bytes(head, "big")))
        kernel = kernel_at(*origin)
        with alone(kernel._cache._folder, parent):
            try:
                kernel.compile(signature)
                answer = DONE
            except Exception:
                answer = FAILED
        with suppress(BrokenPipeError):
            answers.write(answer)
            answers.flush()


def kernel_at(module: str, name: str, arguments: tuple[Any, ...] | None = None, part: str | None = None) -> Any:
    """Return a kernel by where it stands; of one that a factory makes, by what it is made of."""
    found = getattr(import_module(module), name)
    if arguments is None:
        return found
    made = found(*arguments)
    return made if part is None else getattr(made, part)


@contextmanager
def alone(folder: Path | None, parent: int) -> Iterator[None]:
    """Wait until no other process compiles into a folder; end where the parent has ended meanwhile."""
    file = None
    try:
        import fcntl

        assert folder is not None
        file = open(folder / "compiling", "ab")  # noqa: SIM115
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if os.getppid() != parent:
                    raise SystemExit from None
                time.sleep(WAIT)
    except (ImportError, OSError, AssertionError):  # no locks here: two may compile the same, to the same end
        pass
    try:
        yield
    finally:
        if file is not None:
            file.close()
