"""OPLB's cone program keeps the contract of every policy over mixtures."""

from functools import partial
from typing import Any

from tests.contracts.policy import Case, MixtureContract, over
from tests.contracts.test_policies import linear_problems

from stagewise import OPLB


def cases(some: Any, kind: type[OPLB] = OPLB, **settings: Any) -> Any:
    """Parametrise the contract; a mixture may hold all six actions and the safe one."""
    problems = linear_problems(finite=True)
    made = [Case(name, partial(kind, **told, **settings), world, True, 7) for name, world, told in problems]
    return over(made, some)


@cases((0, 7), method="socp")
class TestOPLBByCones(MixtureContract):
    pass
