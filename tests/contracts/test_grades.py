"""OPLB's cone program keeps the contract of every policy over mixtures."""

from functools import partial
from typing import Any

import pytest
from tests.contracts.policy import Case, MixtureContract
from tests.contracts.test_policies import linear_problems

from stagewise import OPLB


def cases(step: int, kind: type[OPLB] = OPLB, **settings: Any) -> Any:
    """Parametrise the contract; a mixture may hold all six actions and the safe one."""
    problems = list(linear_problems(finite=True))[::step]
    made = [Case(name, partial(kind, **told, **settings), world, True, 7) for name, world, told in problems]
    return pytest.mark.parametrize("case", made, ids=str)


@cases(3, method="socp")
class TestOPLBByCones(MixtureContract):
    pass
