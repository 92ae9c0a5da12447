"""Interpret kernels until their machine code is available.

Numba compiles a kernel at its first call with new argument types, which would delay the first decision by seconds.
Instead the kernel runs as plain Python at first; its machine code is loaded from the cache, or compiled by a background
process that writes it there, and takes over between two calls. Both give the same bits
(`tests/agreement/test_interpreted.py`).

`STAGEWISE_COMPILE` is `background` (this), `always` (compile at the first call, as Numba does) or `never`.
"""

import gc
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from queue import Queue
from threading import Lock, RLock, Thread
from typing import Any, get_type_hints

import numpy as np
from numba.core.dispatcher import OmittedArg

from stagewise.engine import cache as code_cache
from stagewise.engine.cache import MachineCode

ALWAYS, BACKGROUND, NEVER = MODES = ("always", "background", "never")
SETTING = "STAGEWISE_COMPILE"
LARGE = 20_000  # array elements in a call; with more, interpreting takes longer than compiling
LOCK = RLock()  # stands in for the GIL, which machine code holds throughout a call


@cache
def mode() -> str:
    """Return the compile mode that the environment sets."""
    value = os.environ.get(SETTING, BACKGROUND)
    if value not in MODES:
        warnings.warn(f"{SETTING} is {value!r}; it must be one of {', '.join(MODES)}: {BACKGROUND}", stacklevel=2)
        return BACKGROUND
    return value


class InterpretedKernel:
    """Replaces Numba's compile step for a kernel without machine code for its arguments."""

    def __init__(
        self, kernel: Any, build_python_form: Callable[[Any], Callable[..., Any]], submit: Callable[..., None]
    ) -> None:
        self.kernel, self._build_python_form, self.submit = kernel, build_python_form, submit
        self.eager = False  # compile at the first call
        self.signatures: set[tuple[Any, ...]] = set()  # signatures that are compiled or requested
        self.origin: tuple[Any, ...] = (kernel.py_func.__module__, kernel.py_func.__name__)

    @cached_property
    def python_form(self) -> Callable[..., Any]:
        """The kernel, and every kernel that it calls, as Python functions."""
        return self._build_python_form(self.kernel)

    @cached_property
    def types(self) -> Any:
        """Its return type, from the annotations."""
        return get_type_hints(self.kernel.py_func).get("return", None)

    def __call__(self, *arguments: Any, **_: Any) -> Callable[..., Any]:
        """Return machine code if it is available, else the interpreted kernel."""
        code = self.kernel._cache
        if mode() == NEVER:
            return self.interpret
        if self.eager or mode() == ALWAYS or not isinstance(code, MachineCode) or count_elements(arguments) > LARGE:
            return self.compiled(*arguments)
        signature = tuple(self.kernel.typeof_pyval(get_argument_value(each)) for each in arguments)
        if signature not in self.signatures:
            self.signatures.add(signature)
            if code.has(signature, self.kernel.targetctx):
                return self.compiled(*arguments)
            self.submit(self, signature)
        return self.interpret

    def compiled(self, *arguments: Any) -> Callable[..., Any]:
        """Compile the kernel now, or load it from the cache; collecting garbage would take an eighth of the time."""
        collects = gc.isenabled()
        gc.disable()
        try:
            found: Callable[..., Any] = type(self.kernel)._compile_for_args(self.kernel, *arguments)
        finally:
            if collects:
                gc.enable()
        return found

    def interpret(self, *arguments: Any) -> Any:
        """Run the kernel as Python; where only Python raises, restore the arrays and run machine code."""
        inputs = [get_argument_value(each) for each in arguments]
        before = [each.copy() if isinstance(each, np.ndarray) else each for each in inputs]
        with LOCK, np.errstate(all="ignore"):
            try:
                return convert_result(self.python_form(*inputs), self.types)
            except (ArithmeticError, ValueError):
                if mode() == NEVER:
                    raise
                for one, other in zip(inputs, before, strict=True):
                    if isinstance(one, np.ndarray) and one.flags.writeable:
                        one[...] = other
        return self.compiled(*arguments)(*arguments)

    @property
    def is_pending(self) -> bool:
        """Whether the kernel is still interpreted."""
        return mode() == NEVER or not self.kernel.overloads


def count_elements(arguments: tuple[Any, ...]) -> int:
    """Return how many numbers the arrays contain."""
    return sum(each.size for each in arguments if isinstance(each, np.ndarray))


def get_argument_value(argument: Any) -> Any:
    """Return an argument's value, or its default if it was omitted."""
    return argument.value if isinstance(argument, OmittedArg) else argument


def convert_result(result: Any, types: Any) -> Any:
    """Return a Python result in the types that machine code returns, without NumPy scalars."""
    if types in (int, float, bool):
        return types(result)
    if isinstance(result, tuple):
        values = [each.item() if isinstance(each, np.generic) else each for each in result]
        return result._make(values) if hasattr(result, "_make") else tuple(values)
    return result.item() if isinstance(result, np.generic) else result


RUN = "from stagewise.engine.background import compile_requests; compile_requests()"
DONE, FAILED = b"d", b"f"
WAIT = 0.05  # seconds between two attempts to lock the folder
LOADING = RLock()  # held while machine code is loaded, because loading takes Numba's locks


class Compiler:
    """Sends compile requests, one at a time, to a child process."""

    def __init__(self) -> None:
        self.requests: Queue[tuple[InterpretedKernel, tuple[Any, ...]]] = Queue()
        self.lock = Lock()
        self.thread: Thread | None = None
        self.process: Any = None
        self.temporary: Path | None = None  # cache folder of this process where the shared one cannot be written

    def submit(self, request_kernel: InterpretedKernel, signature: tuple[Any, ...]) -> None:
        """Request that a kernel is compiled for these argument types and then loaded."""
        self.requests.put((request_kernel, signature))
        with self.lock:
            if self.thread is None:
                self.thread = Thread(target=self.serve, name="stagewise-compile", daemon=True)
                self.thread.start()

    def serve(self) -> None:
        """Process requests until this process ends."""
        while True:
            self.load(*self.requests.get())
            self.requests.task_done()

    @property
    def is_idle(self) -> bool:
        """Whether every request has been processed."""
        return self.requests.unfinished_tasks == 0

    def load(self, request_kernel: InterpretedKernel, signature: tuple[Any, ...]) -> None:
        """Have the child compile a kernel, then load it; compile it in this process if the child cannot."""
        kernel, code = request_kernel.kernel, request_kernel.kernel._cache
        folder = code._folder
        with suppress(OSError, EOFError, ValueError):
            self.make(pickle.dumps((request_kernel.origin, signature)), folder)
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
        """Send a request to the child process and wait for its reply."""
        if self.process is None:
            self.process = self.start(folder)
        self.process.stdin.write(len(request).to_bytes(8, "big") + request)
        if self.process.stdout.read(1) not in (DONE, FAILED):
            raise EOFError("the process that compiles has ended")

    def start(self, folder: Path | None) -> Any:
        """Start the child process with this process's path and settings."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), SETTING: ALWAYS}
        if not code_cache.can_write(folder):
            self.temporary = Path(tempfile.mkdtemp(prefix="stagewise-"))
            environment["STAGEWISE_CACHE"] = str(self.temporary)
        pipe, devnull = subprocess.PIPE, subprocess.DEVNULL
        command = [sys.executable, "-P", "-c", RUN, *([] if self.temporary is None else [str(self.temporary)])]
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=devnull, env=environment, bufsize=0)


COMPILER = Compiler()


def acquire_locks() -> None:
    """Wait until no thread interprets or loads a kernel, so that a forked process does not inherit held locks."""
    LOCK.acquire()
    LOADING.acquire()


def release_locks() -> None:
    """Release the locks after a fork."""
    LOADING.release()
    LOCK.release()


def reset_after_fork() -> None:
    """Reset the compiler in a forked process: threads, pipes and folders belong to the parent."""
    release_locks()
    process = COMPILER.process
    if process is not None:
        process.stdin.close()
        process.stdout.close()
        process.returncode = 0  # it is no child of this one, which cannot wait for it
    COMPILER.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=acquire_locks, after_in_parent=release_locks, after_in_child=reset_after_fork)


def compile_requests() -> None:
    """Compile what the parent requests until it ends, then remove the temporary folder given as an argument, if any."""
    try:
        serve_requests(os.getppid())
    finally:
        for folder in sys.argv[1:]:
            shutil.rmtree(folder, ignore_errors=True)


def serve_requests(parent: int) -> None:
    """Compile what the parent requests; the results stay in the cache for later processes."""
    if hasattr(os, "nice"):
        os.nice(5)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while header := requests.read(8):
        origin, signature = pickle.loads(requests.read(int.from_bytes(header, "big")))
        kernel = import_kernel(*origin)
        with lock_folder(kernel._cache._folder, parent):
            try:
                kernel.compile(signature)
                answer = DONE
            except Exception:
                answer = FAILED
        with suppress(BrokenPipeError):
            answers.write(answer)
            answers.flush()


def import_kernel(module: str, name: str, arguments: tuple[Any, ...] | None = None, field: str | None = None) -> Any:
    """Return a kernel by module and name; of a factory, the kernel that it builds from `arguments`, or its `field`."""
    found = getattr(import_module(module), name)
    if arguments is None:
        return found
    result = found(*arguments)
    return result if field is None else getattr(result, field)


@contextmanager
def lock_folder(folder: Path | None, parent: int) -> Iterator[None]:
    """Hold the compile lock of a folder; exit if the parent has ended."""
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
    except (ImportError, OSError, AssertionError):  # no file locks here: two processes may compile the same kernel
        pass
    try:
        yield
    finally:
        if file is not None:
            file.close()
