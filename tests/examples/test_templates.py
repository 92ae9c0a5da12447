"""The tutorial's example runs from the log to late outcomes, and keeps both limits."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.compiled

EXAMPLE = Path(__file__).parents[2] / "examples" / "templates.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    room: dict[str, Any] = {"__name__": "templates", "__file__": str(EXAMPLE)}
    exec(compile(EXAMPLE.read_text(encoding="utf-8"), str(EXAMPLE), "exec"), room)
    return room


@pytest.mark.parametrize("size", [(4, 600, 20_000), pytest.param((9, 1_500, 50_000), marks=pytest.mark.slow)])
def test_a_campaign_after_a_log_gains_and_breaks_nothing(
    example: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path, size: tuple[int, int, int]
) -> None:
    days, people, rows = size
    month = example["main"](days=days, people=people, rows=rows)
    assert sum(day.over for day in month) == 0
    assert 0.3 < example["compute_gain"](month) <= 1.0
    assert all(day.true[name] <= day.pessimistic[name] for day in month for name in day.true)
    example["print_days"](month)
    assert "0 users over a limit" in capsys.readouterr().out
    example["draw_days"](month, tmp_path / "month.png")
    assert (tmp_path / "month.png").stat().st_size > 10_000


def test_the_best_mixture_of_two_is_the_best_there_is(example: dict[str, Any]) -> None:
    import numpy as np
    from scipy.optimize import linprog

    world, chance = example["truth"](), np.random.default_rng(2)
    _, users = example["users"](20, chance)
    for user, best in zip(users, world.best(users), strict=True):
        solved = linprog(-world.clicks @ user, A_ub=world.costs, b_ub=[0.02, 0.005], A_eq=[np.ones(6)], b_eq=[1.0])
        assert best <= -solved.fun + 1e-9
        assert best >= 0.99 * -solved.fun  # two limits may need a third template
