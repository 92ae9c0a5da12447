"""Kernels and listed actions in a TOML file."""

from pathlib import Path

import pytest

from stagewise import RBF, FiniteSetWorld, KernelOPLB, LinearKernel, Matern
from stagewise.cli.spec import read_spec
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.simulation.simulate import simulate

FILE = """
[simulation]
rounds = 50

[world]
kind = "table"
features = [[0.0], [0.5], [1.0]]
reward = [0.1, 0.4, 0.8]
cost = [0.0, 0.1, 0.4]
noise = 0.1

[policy]
kind = "KernelOPLB"
kernel = KERNEL
safe_action = { features = [0.0], reward = 0.1, cost = 0.0 }
threshold = 0.3
noise = 0.1
norm_bound = 1.0
"""


def written(path: Path, kernel: str) -> Path:
    (path / "file.toml").write_text(FILE.replace("KERNEL", kernel))
    return path / "file.toml"


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ('{ kind = "rbf", lengthscale = 0.3 }', RBF(lengthscale=0.3)),
        ('{ kind = "matern", lengthscale = 0.3 }', Matern(lengthscale=0.3)),
        ('{ kind = "matern", lengthscale = 2, smoothness = 0.5 }', Matern(lengthscale=2.0, smoothness=0.5)),
    ],
)
def test_kernels_are_read(kernel: str, expected: object, tmp_path: Path) -> None:
    spec = read_spec(written(tmp_path, kernel))
    policy = spec.policies["policy"]
    assert isinstance(spec.world, FiniteSetWorld)
    assert isinstance(policy, KernelOPLB)
    assert policy.kernel == expected
    assert simulate(policy, spec.world, rounds=spec.simulation.rounds).reward.shape == (1, 50)


def test_the_linear_kernel_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, '{ kind = "linear" }')
    path.write_text(path.read_text().replace("reward = 0.1, cost = 0.0", "reward = 0.0, cost = 0.0"))
    assert read_spec(path).policies["policy"].kernel == LinearKernel()


@pytest.mark.parametrize(
    "kernel",
    [
        '"rbf"',
        "{ lengthscale = 0.3 }",
        '{ kind = "cubic", lengthscale = 0.3 }',
        '{ kind = "rbf" }',
        '{ kind = "rbf", lengthscale = 0.3, smoothness = 2.5 }',
        '{ kind = "linear", lengthscale = 0.3 }',
    ],
)
def test_tables_that_are_no_kernel_are_refused(kernel: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_spec(written(tmp_path, kernel))
    assert caught.value.code is ErrorCode.FILE_INVALID
    assert any("policy.kernel" in str(value) for value in caught.value.details["error"].details.values())


def test_a_kernel_refuses_its_own_settings(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_spec(written(tmp_path, '{ kind = "rbf", lengthscale = -1.0 }'))
    assert caught.value.code is ErrorCode.FILE_INVALID
    error = caught.value.details["error"]
    assert (error.code, error.details["subject"]) == (ErrorCode.OUT_OF_RANGE, "lengthscale")
