"""Kernels are interpreted first, and machine code takes over between two calls: no result changes, whatever fails."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.processes import asked, files

from stagewise.engine import background as interpreted
from stagewise.engine.pair import first_best

pytestmark = pytest.mark.compiled

ROUNDS = 400
# Plays an agent until its kernels are machine code and some rounds longer, and prints how it was played, and a digest.
PLAY = f"""
import hashlib, sys, threading, time
import numpy as np
import stagewise as sw
from stagewise.engine.background import COMPILER
from stagewise.engine.background import InterpretedKernel

counts, interpret = [0, 0], InterpretedKernel.interpret

def counted(self, *arguments):
    counts[0] += 1
    return interpret(self, *arguments)

InterpretedKernel.interpret = counted
safe = sw.SafeAction(arm=0, reward=0.3, cost=0.1)
agent = sw.Agent(sw.OPB(arms=4, safe_action=safe, threshold=0.5, noise=0.5), seed=1)
digest, random, waited = hashlib.sha256(), np.random.default_rng(0), time.monotonic()
means = np.array([[0.3, 0.6, 0.8, 0.4], [0.1, 0.4, 0.7, 0.2]])
for round_ in range({ROUNDS}):
    if round_ == {ROUNDS // 2}:
        counts[1] = counts[0]
        while not COMPILER.is_idle and time.monotonic() < waited + SECONDS:
            time.sleep(0.05)
        counts[0] = 0
    decision = agent.decide()
    bounds = decision.optimistic_reward, decision.pessimistic_cost
    digest.update(repr((decision.action_index, decision.probabilities.tolist(), *bounds)).encode())
    reward, cost = means[:, decision.action_index] + 0.1 * random.normal(size=2)
    agent.learn(decision, reward=reward, cost=cost)
print(digest.hexdigest(), counts[1] > 0, counts[0] == 0)
"""


def played(seconds: float = 3000.0, **environment: str) -> list[str]:
    """Return the digest, whether it was interpreted at first, and whether it was machine code at last."""
    return asked(PLAY.replace("SECONDS", str(seconds)), **environment)[0].split()


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Return a run through the swap, and one of a second process, which finds what the first has kept."""
    settings = {"STAGEWISE_COMPILE": "background", "STAGEWISE_CACHE": str(tmp_path_factory.mktemp("kept"))}
    return [played(**settings) for _ in range(2)]


@pytest.fixture(scope="module")
def compiled(swapped: list[list[str]]) -> str:
    """Return the digest of a run that is machine code from its first call on."""
    return swapped[1][0]


def test_a_run_through_the_swap_is_the_compiled_run(swapped: list[list[str]], compiled: str) -> None:
    assert swapped == [[compiled, "True", "True"], [compiled, "False", "True"]]


def test_never_compiles_nothing_and_plays_the_same(compiled: str, tmp_path: Path) -> None:
    settings = {"STAGEWISE_COMPILE": "never", "STAGEWISE_CACHE": str(tmp_path)}
    assert played(0.0, **settings) == [compiled, "True", "False"]
    assert files(tmp_path) == {}


@pytest.mark.slow
def test_machine_code_that_cannot_be_kept_is_loaded_all_the_same(compiled: str, tmp_path: Path) -> None:
    (tmp_path / "stagewise").write_text("a file in the place of the folder")
    settings = {"STAGEWISE_COMPILE": "background", "STAGEWISE_CACHE": str(tmp_path), "TMPDIR": str(tmp_path)}
    assert played(**settings) == [compiled, "True", "True"]
    gone(tmp_path)


def test_a_process_that_is_forked_leaves_what_the_other_has_alone(tmp_path: Path) -> None:
    """Workers of a pool are forked while the first kernels are compiled, and end before them."""
    if not hasattr(os, "fork"):
        pytest.skip("nothing is forked here")
    code = """
import os, sys, time
import numpy as np
from stagewise.engine.background import COMPILER
from stagewise.engine.pair import first_best

first_best(np.array([1.0, 3.0]))
while COMPILER.process is None:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    first_best(np.array([1.0, 3.0]))
    sys.exit()
print(os.waitpid(child, 0)[1], sum(name.startswith("stagewise-") for name in os.listdir(os.environ["TMPDIR"])))
"""
    (tmp_path / "stagewise").write_text("a file in the place of the folder")
    settings = {"STAGEWISE_CACHE": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONWARNINGS": "error"}
    output, complaints = asked(code, STAGEWISE_COMPILE="background", **settings)
    assert output == "0 1"
    assert complaints == ""
    gone(tmp_path)


def gone(position: Path) -> None:
    """Wait until the folders are gone that stood in for a cache: they go with the processes that they were for."""
    for _ in range(600):
        if not list(position.glob("stagewise-*")):
            return
        time.sleep(0.1)
    pytest.fail("they are left")


@pytest.mark.slow
def test_without_another_process_it_is_compiled_in_this_one(compiled: str, tmp_path: Path) -> None:
    code = "import sys\nsys.executable = '/nothing/here'\n" + PLAY.replace("SECONDS", "300")
    settings = {"STAGEWISE_COMPILE": "background", "STAGEWISE_CACHE": str(tmp_path)}
    assert asked(code, **settings)[0].split() == [compiled, "True", "True"]


def test_without_numba_it_plays_the_same_and_says_so_once(compiled: str, tmp_path: Path) -> None:
    missing = "import sys\nsys.modules['numba'] = sys.modules['llvmlite'] = None\n"
    code = PLAY[: PLAY.index("from stagewise")] + PLAY[PLAY.index("safe =") : PLAY.index("    if round_")]
    code += PLAY[PLAY.index("    decision =") : PLAY.index("print")] + "print(digest.hexdigest())"
    output, complaints = asked(missing + code, STAGEWISE_CACHE=str(tmp_path))
    assert output == compiled
    assert complaints.count("RuntimeWarning: kernels are interpreted") == 1


def test_a_process_that_ends_leaves_none_that_waits_to_compile(tmp_path: Path) -> None:
    """A hundred short commands do not leave a hundred compilers behind them: one compiles at a time."""
    fcntl = pytest.importorskip("fcntl")
    settings = {"STAGEWISE_COMPILE": "background", "STAGEWISE_CACHE": str(tmp_path)}
    code = (
        "import numpy as np\nfrom stagewise.engine.pair import first_best\n"
        "from stagewise.engine.background import COMPILER\nimport time\n"
        "assert first_best(np.array([1.0, 3.0])) == 1\n"
        "while COMPILER.process is None:\n    time.sleep(0.01)\ntime.sleep(DELAY)\nprint(COMPILER.process.pid)"
    )
    asked(code.replace("DELAY", "0"), **settings)  # makes the folder
    folder = next((tmp_path / "stagewise").iterdir())
    with open(folder / "compiling", "ab") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        pid = int(asked(code.replace("DELAY", "2"), **settings)[0])
        for _ in range(200):
            if not Path(f"/proc/{pid}").exists():
                break
            time.sleep(0.1)
        else:
            pytest.fail("it waits on")


LOG = """
import hashlib
import numpy as np
import stagewise as sw

problem = sw.Problem(
    action_names=["nothing", "digest", "offer"], safe_name="nothing", context=["age"], reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.2, safe_bound=0.0, by="country")},
)
agent, random, n = sw.Agent(problem, seed=1), np.random.default_rng(0), 600
sent = random.integers(3, size=n)
agent.learn_log_frame({
    "action": np.array(problem.action_names)[sent],
    "age": random.uniform(-1, 1, n), "country": random.integers(5, size=n),
    "click": random.random(n) < 0.1 * sent, "opt_out": random.random(n) < 0.01 * sent,
})
decision = agent.decide({"age": 0.5, "country": 2})
print(hashlib.sha256(agent.state.memory.tobytes()).hexdigest(), decision.probabilities)
"""


@pytest.mark.slow
def test_a_log_is_learned_the_same_in_few_rows_at_a_time(tmp_path: Path) -> None:
    modes = ("always", "never", "background")
    answers = [asked(LOG, STAGEWISE_COMPILE=mode, STAGEWISE_CACHE=str(tmp_path / mode))[0] for mode in modes]
    assert answers[1:] == answers[:1] * 2


class TestInterpreted:
    """Of one kernel, in this process."""

    @pytest.fixture
    def waiting(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Return what a kernel asks while it has no machine code; nothing is compiled in the background."""
        monkeypatch.setattr(interpreted, "mode", lambda: "background")
        kernel: Any = first_best
        return interpreted.InterpretedKernel(kernel, lambda kernel: kernel.py_func, lambda *asked: None)

    def test_what_python_raises_changes_nothing_and_is_compiled(self, waiting: Any) -> None:
        def broken(values: Any) -> int:
            values[0] = 7.0
            raise ZeroDivisionError

        waiting.python_form, values = broken, np.array([1.0, 3.0])
        assert waiting.interpret(values) == 1
        assert values.tolist() == [1.0, 3.0]

    def test_results_have_the_types_of_machine_code(self) -> None:
        assert [type(interpreted.convert_result(value, kind)) for value, kind in [
            (np.float64(1.0), float), (np.int64(1), int), (np.bool_(True), bool), (0, float), (np.float64(1.0), None),
        ]] == [float, int, bool, float, float]  # fmt: skip
        assert interpreted.convert_result((np.float64(1.0), 2), None) == (1.0, 2)

    def test_much_at_once_is_compiled_at_once(self, waiting: Any) -> None:
        assert waiting(np.zeros(interpreted.LARGE + 1)) != waiting.interpret

    def test_a_setting_that_is_none_is_told(self) -> None:
        code = "from stagewise.engine.background import mode\nprint(mode())"
        output, complaints = asked(code, STAGEWISE_COMPILE="sometimes")
        assert output == "background"
        assert "STAGEWISE_COMPILE is 'sometimes'; it must be one of always, background, never" in complaints


@pytest.mark.slow
def test_threads_share_an_agent_through_the_swap(tmp_path: Path) -> None:
    code = """
import threading, time
import numpy as np
import stagewise as sw

safe = sw.SafeAction(arm=0, reward=0.3, cost=0.1)
agent = sw.Agent(sw.OPB(arms=4, safe_action=safe, threshold=0.5, noise=0.5), seed=1)
from stagewise.engine.background import COMPILER
count, end = [0] * 4, time.monotonic() + 300

def play(which):
    more = 200
    while more and time.monotonic() < end:
        decision = agent.decide()
        agent.learn(decision, reward=0.5, cost=0.1)
        count[which] += 1
        more -= COMPILER.is_idle
        time.sleep(0.0005)

threads = [threading.Thread(target=play, args=(which,)) for which in range(4)]
[one.start() for one in threads], [one.join() for one in threads]
print(agent.round == sum(count), COMPILER.is_idle, sum(count) > 800)
"""
    environment = {**os.environ, "STAGEWISE_COMPILE": "background", "STAGEWISE_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["True", "True", "True"], done.stderr


def test_a_fork_in_the_middle_of_an_interpreted_call_of_another_thread_goes_on(tmp_path: Path) -> None:
    """The forked process has no such thread, so that nobody there would ever let go of its lock."""
    code = """
import os, signal, threading, time
import numpy as np
from stagewise.engine.background import LOCK
from stagewise.engine.pair import first_best

held = threading.Event()

def interpret():
    with LOCK:
        held.set()
        time.sleep(0.5)

threading.Thread(target=interpret).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(40 + first_best(np.array([1.0, 3.0])))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), first_best(np.array([1.0, 3.0])))
"""
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    settings = {"STAGEWISE_COMPILE": "never", "STAGEWISE_CACHE": str(tmp_path)}
    assert asked(code, **settings)[0] == "41 1"
