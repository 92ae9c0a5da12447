"""What an extra brings can be imported together: bounds that pip must be told, since the packages do not tell it."""

import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
GONE = "2.5.0"  # the first NumPy without `row_stack`


def allowed(package: str, extra: str | None) -> SpecifierSet:
    """Return which versions of a package may be installed with an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(project["optional-dependencies"][extra] if extra else [])]
    bounds = SpecifierSet()
    for one in map(Requirement, asked):
        bounds &= one.specifier if canonicalize_name(one.name) == package else SpecifierSet()
    return bounds


def locked(package: str) -> str:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))


def test_the_gpu_extra_keeps_a_numpy_with_which_numba_cuda_imports() -> None:
    with_gpu = allowed("numpy", "cuda")
    assert (GONE in with_gpu, "2.6.1" in with_gpu) == (False, False)
    assert locked("numpy") in with_gpu
    assert GONE in allowed("numpy", None)  # who has no GPU may have a later one


def test_numba_cuda_still_needs_it() -> None:
    """Where this fails, the bound above is for nothing."""
    found = find_spec("numba_cuda")
    if found is None or not found.submodule_search_locations:
        pytest.skip("numba-cuda is not installed")
    sources = (path for place in found.submodule_search_locations for path in Path(place).rglob("arrayobj.py"))
    assert any("np.row_stack" in source.read_text() for source in sources)
