"""Machine code is found again in another process, never when it is old, and compiled where it cannot be kept."""

import pickle
import shutil
from pathlib import Path

import pytest
from tests.engine.processes import ALONE, ASK, COMPILED, FOUND, asked, copied, files

from stagewise.engine import cache as code_cache

pytestmark = pytest.mark.compiled

CALLED = "from stagewise.engine.compile import kernel\n\n\n@kernel\ndef number() -> float:\n    return 1.0\n"
CALLER = """from stagewise.engine.compile import kernel
from {called} import number


@kernel
def twice() -> float:
    return 2.0 * number()
"""
FACTORY = """from functools import cache
from stagewise.engine.compile import kernel


@cache
def scaled(factor: int):
    @kernel
    def times(x: float) -> float:
        return factor * x

    @kernel
    def twice(x: float) -> float:
        return 2.0 * times(x)

    return twice
"""
CHOOSER = """from functools import cache
from stagewise.engine.compile import kernel


@kernel
def double(x: float) -> float:
    return 2.0 * x


@kernel
def triple(x: float) -> float:
    return 3.0 * x


@cache
def scaled(which: int):
    scale = (double, triple)[which]

    @kernel
    def by(x: float) -> float:
        return scale(x)

    return by
"""
TAKER = """from stagewise.engine.compile import kernel


def doubled(scale):
    @kernel
    def twice() -> float:
        return 2.0 * scale()

    return twice
"""
REAL = """
import numpy as np
from stagewise.engine.mixture_program import compute_optimal_value_on_rays
from stagewise.models.regression import radius
hits = compute_optimal_value_on_rays.stats.cache_hits
print(compute_optimal_value_on_rays(np.array([[1.0, 0.0], [4.0, 0.0]]), np.array([1.0])), sum(hits.values()))
print(radius(0, 1.0, 0.0, 1.0, 2.0, 5.0, 1, 1.0), sum(radius.stats.cache_hits.values()))
"""
ROOMS = ["engine", "models", "rules"]
UNKNOWN_USER = f"""
import pwd

def nobody(uid):
    raise KeyError(uid)

pwd.getpwuid = nobody
{ASK}"""


@pytest.fixture
def filled(compiled_once: Path, tmp_path: Path) -> Path:
    """Return a cache with a kernel in it."""
    return Path(shutil.copytree(compiled_once, tmp_path / "cache"))


def read_only(folder: Path) -> Path:
    """Take the right to write from everybody."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


def test_it_is_found_again(filled: Path) -> None:
    assert asked(STAGEWISE_CACHE=str(filled)) == (FOUND, "")


def test_where_it_is_found_no_compiler_is_loaded(filled: Path) -> None:
    """Numba's library of what it can compile takes longer to load than all the rest of a first decision."""
    code = f"import sys\n{ASK}print([name in sys.modules for name in ('numba.np.arraymath', 'scipy.linalg')])"
    assert asked(code, STAGEWISE_CACHE=str(filled)) == (f"{FOUND}\n[False, False]", "")


def test_it_is_found_where_the_package_was_copied(filled: Path, tmp_path: Path) -> None:
    assert asked(package=copied(tmp_path), STAGEWISE_CACHE=str(filled)) == (FOUND, "")


def test_a_filled_cache_that_is_read_only_is_used(filled: Path) -> None:
    before = files(read_only(filled))
    assert asked(bound=True, STAGEWISE_CACHE=str(filled)) == (FOUND, "")
    assert files(filled) == before


def test_an_empty_cache_that_is_read_only_costs_time_and_one_sentence(tmp_path: Path) -> None:
    out, complaint = asked(bound=True, STAGEWISE_CACHE=str(read_only(tmp_path)))
    assert out == COMPILED
    assert complaint.count(ALONE) == 1
    assert "Permission denied" in complaint
    assert files(tmp_path) == {}


def test_a_user_without_a_home_costs_time_and_one_sentence(tmp_path: Path) -> None:
    out, complaint = asked(UNKNOWN_USER, TMPDIR=str(tmp_path))
    assert out == COMPILED
    assert complaint.count(ALONE) == 1
    assert files(tmp_path) == {}


def test_a_home_that_is_not_there_costs_time_and_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    out, complaint = asked(HOME=str(tmp_path / "file" / "home"), TMPDIR=str(tmp_path))
    assert out == COMPILED
    assert complaint.count(ALONE) == 1
    assert list(files(tmp_path)) == [str(tmp_path / "file")]


@pytest.mark.parametrize(
    "names", [("STAGEWISE_CACHE", "XDG_CACHE_HOME", "HOME"), ("XDG_CACHE_HOME", "HOME"), ("HOME",)]
)
def test_the_first_that_is_named_is_used(names: tuple[str, ...], tmp_path: Path) -> None:
    asked(**{name: str(tmp_path / name) for name in names})
    assert [path.name for path in tmp_path.iterdir()] == [names[0]]


def test_where_warnings_are_errors_nothing_fails(tmp_path: Path) -> None:
    code = f"import warnings\nwarnings.simplefilter('error')\n{ASK}"
    assert asked(code, bound=True, STAGEWISE_CACHE=str(read_only(tmp_path))) == (COMPILED, "")


def test_what_is_damaged_is_compiled_again(filled: Path) -> None:
    before = files(filled)
    for name, content in before.items():
        Path(name).write_bytes(content[: len(content) // 2])
    assert asked(STAGEWISE_CACHE=str(filled)) == (COMPILED, "")
    assert asked(STAGEWISE_CACHE=str(filled)) == (FOUND, "")


def test_what_stands_under_another_name_is_compiled_again(filled: Path) -> None:
    for name, content in files(filled).items():
        key, parts = pickle.loads(content)
        Path(name).write_bytes(pickle.dumps(((*key[:-1], "another"), parts)))
    assert asked(STAGEWISE_CACHE=str(filled)) == (COMPILED, "")


def test_a_kernel_that_calls_a_changed_one_is_compiled_again(tmp_path: Path) -> None:
    """In every package: the change is in another file than the kernel that was asked for, of the same size and time."""
    package, cache = copied(tmp_path), str(tmp_path / "cache")
    code = ""
    for room in ROOMS:
        index = f"stagewise.{room.replace('/', '.')}"
        (package / room / "called.py").write_text(CALLED)
        (package / room / "caller.py").write_text(CALLER.format(called=f"{index}.called"))
        code += f"from {index}.caller import twice\nprint(twice(), sum(twice.stats.cache_hits.values()))\n"
    answers = [asked(code, package, STAGEWISE_CACHE=cache)[0].splitlines() for _ in range(2)]
    assert answers == [["2.0 0"] * 3, ["2.0 1"] * 3]
    for changed, room in enumerate(ROOMS):
        (package / room / "called.py").write_text(CALLED.replace("1.0", "5.0"))
        answer = asked(code, package, STAGEWISE_CACHE=cache)[0].splitlines()
        assert answer == ["10.0 0"] * (changed + 1) + ["2.0 0"] * (2 - changed)


def test_a_change_in_a_kernel_is_seen_though_old_machine_code_is_there(tmp_path: Path) -> None:
    package, cache = copied(tmp_path), str(tmp_path / "cache")
    answers = [asked(REAL, package, STAGEWISE_CACHE=cache)[0].splitlines() for _ in range(2)]
    assert answers == [["0.25 0", "3.0 0"], ["0.25 1", "3.0 1"]]
    for file, old, new, after in [
        ("engine/workspace.py", "else slack / slope", "else 0.5 * slack / slope", ["0.125 0", "3.0 0"]),
        ("engine/mixture_program.py", "    return best\n", "    return best + 100.0\n", ["100.125 0", "3.0 0"]),
        ("models/regression.py", "ridge * bound * bound)", "ridge * bound * bound) + 1.0", ["100.125 0", "4.0 0"]),
    ]:
        text = (package / file).read_text(encoding="utf-8")
        assert old in text
        (package / file).write_text(text.replace(old, new, 1), encoding="utf-8")
        assert asked(REAL, package, STAGEWISE_CACHE=cache)[0].splitlines() == after


MADE = [(FACTORY, {3: 9.0, 5: 15.0}), (CHOOSER, {0: 3.0, 1: 4.5})]


@pytest.mark.parametrize(("text", "values"), MADE, ids=["numbers", "kernels"])
def test_kernels_made_for_others_are_kept_apart(text: str, values: dict[int, float], tmp_path: Path) -> None:
    """They have one name and stand in one line; what they capture tells them apart, also through what they call."""
    package, cache = copied(tmp_path), str(tmp_path / "cache")
    (package / "engine" / "factory.py").write_text(text)
    code = f"from stagewise.engine.factory import scaled\nfor f in map(scaled, {tuple(values)}):\n"
    code += "    print(f(1.5), sum(f.stats.cache_hits.values()))"
    answers = [asked(code, package, STAGEWISE_CACHE=cache)[0].splitlines() for _ in range(2)]
    assert answers == [[f"{value} {hits}" for value in values.values()] for hits in (0, 1)]


def test_a_kernel_outside_the_package_is_not_kept(tmp_path: Path) -> None:
    """Nobody can tell which texts it is made of."""
    (tmp_path / "called.py").write_text(CALLED)
    (tmp_path / "caller.py").write_text(CALLER.format(called="called"))
    code = f"import sys\nsys.path.append({str(tmp_path)!r})\nfrom caller import twice\nprint(twice())"
    assert asked(code, STAGEWISE_CACHE=str(tmp_path / "cache"))[0] == "2.0"
    (tmp_path / "called.py").write_text(CALLED.replace("1.0", "5.0"))
    assert asked(code, STAGEWISE_CACHE=str(tmp_path / "cache"))[0] == "10.0"
    assert not (tmp_path / "cache").exists()


def test_a_kernel_of_the_package_that_captures_one_from_outside_is_not_kept(tmp_path: Path) -> None:
    """Its key tells the name of what it captures and not its text: an edited model would bring back old results."""
    package, cache = copied(tmp_path), str(tmp_path / "cache")
    (package / "engine" / "taker.py").write_text(TAKER)
    code = f"import sys\nsys.path.append({str(tmp_path)!r})\nfrom stagewise.engine.taker import doubled\n"
    code += "from called import number\nprint(doubled(number)())"
    for value in ("1.0", "5.0"):
        (tmp_path / "called.py").write_text(CALLED.replace("1.0", value))
        assert asked(code, package, STAGEWISE_CACHE=cache)[0] == str(2.0 * float(value))


def test_other_makers_have_another_folder() -> None:
    assert (
        len(
            {
                code_cache.build_folder_path(code_cache.list_sources(), makers)
                for makers in ([], ["1.0"], ["1.1"], ["1.", "1"])
            }
        )
        == 4
    )
