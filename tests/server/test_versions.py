"""What may change while a log goes on: limits and actions, and nothing that sets are made of."""

from typing import Any

import numpy as np
import pytest
from tests.server.logs import month, problem

import stagewise as sw
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.server.controls import build_first_version, build_next_version, get_declared_problem
from stagewise.server.state_fold import StateFold


def limits(**opt_out: Any) -> dict[str, sw.Limit]:
    told: dict[str, Any] = {"value": 0.05, "safe_bound": 0.001, "window": "7d", "model": "rates", **opt_out}
    return {"opt_out": sw.Limit(**told), "complaint": problem().limits["complaint"]}


def test_a_limit_may_move_and_every_set_stays_what_it_was() -> None:
    before = build_first_version(problem())
    after = build_next_version(before, problem(limits=limits(value=0.1)))
    log, folds = month(300), [StateFold(one.problem, one.number) for one in (before, after)]
    for fold in folds:
        fold.take(log.events)
    old, new = (fold.learned.state.memory for fold in folds)
    assert np.array_equal(old, new)
    loose = StateFold(problem(limits=limits(value=0.1)), 1)  # no set depends on the limit
    loose.take(log.events)
    assert np.array_equal(loose.learned.state.memory, old)


def test_a_logistic_limit_stays_since_it_is_the_prior_mean() -> None:
    first = build_first_version(problem(limits=limits(model="logistic")))
    with pytest.raises(InvalidProblem) as refusal:
        build_next_version(first, problem(limits=limits(value=0.1, model="logistic")))
    assert (refusal.value.code, refusal.value.details["field"]) == (ErrorCode.CHANGE_NOT_ALLOWED, "value")


def test_actions_may_come_and_go_and_come_back() -> None:
    one = build_first_version(problem())
    two = build_next_version(one, problem(action_names=["nothing", "offer", "sale"]))
    assert (list(two.problem.action_names), two.retired) == (["nothing", "digest", "offer", "sale"], {"digest"})
    three = build_next_version(two, problem(action_names=["nothing", "digest", "offer", "sale"]))
    assert three.retired == frozenset()
    assert three.problem.policy().initial_actions == 3
    fold = StateFold(three.problem, 3)
    fold.take(month(50).events)
    assert fold.learned.update_count >= 100


def test_what_is_told_of_a_version_can_be_said_again_in_any_order() -> None:
    """Whoever asks for a problem and sends it back with a change has its names in another order."""
    two = build_next_version(build_first_version(problem()), problem(action_names=["nothing", "offer", "sale"]))
    plain = get_declared_problem(two)
    assert plain["action_names"] == ["nothing", "offer", "sale"]
    assert plain["settings"] == {}
    turned = {key: dict(reversed(value.items())) if isinstance(value, dict) else value for key, value in plain.items()}
    turned["limits"]["opt_out"] = {**turned["limits"]["opt_out"], "at_most": 0.03}
    three = build_next_version(two, sw.Problem.from_dict(turned))
    assert [name for name, limit in three.problem.limits.items() if limit.value == 0.03] == ["opt_out"]
    assert three.retired == {"digest"}
    assert list(three.problem.limits) == list(two.problem.limits)
    assert three.problem.ranges == two.problem.ranges


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"delta": 0.1}, "delta"),
        ({"context": {"age": (0, 120), "tenure": (-1, 1)}}, "context"),
        ({"reward": sw.Reward("click", high=2.0)}, "reward"),
        ({"safe_name": "digest"}, "safe_name"),
        ({"limits": limits(safe_bound=0.002)}, "safe_bound"),
        ({"limits": limits(window="8d")}, "window"),
        ({"limits": limits(value=sw.AtLeast(0.0005))}, "at_least"),
        ({"limits": {"opt_out": sw.Limit(0.05, safe_bound=0.001, window="7d", model="rates")}}, "names of limits"),
        ({"settings": {"posterior_scale": 0.5}}, "settings"),
        ({"settings": {"initial_actions": 2}}, "settings.initial_actions"),
    ],
)
def test_what_sets_are_made_of_cannot_be_chosen_after_looking(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as refusal:
        build_next_version(build_first_version(problem()), problem(**changed))
    assert (refusal.value.code, refusal.value.details["field"]) == (ErrorCode.CHANGE_NOT_ALLOWED, field)


@pytest.mark.parametrize("drift", ["0.005/30d", ("0.01", "30d")])
def test_a_limit_with_a_slope_or_a_budget_keeps_its_value(drift: Any) -> None:
    def declare(value: float, moves: Any) -> sw.Problem:
        limits = {"opt_out": sw.Limit(value, safe_bound=0.0, drift=moves)}
        return sw.Problem(action_names=["a", "b"], safe_name="a", reward=sw.Reward("click"), limits=limits)

    first = build_first_version(declare(0.02, drift))
    with pytest.raises(InvalidProblem) as refusal:
        build_next_version(first, declare(0.01, drift))
    assert (refusal.value.code, refusal.value.details["field"]) == (ErrorCode.CHANGE_NOT_ALLOWED, "value")
    build_next_version(build_first_version(declare(0.02, "jumps")), declare(0.01, "jumps"))
