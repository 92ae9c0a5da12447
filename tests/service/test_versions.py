"""What may change while a log goes on: limits and actions, and nothing that sets are made of."""

from typing import Any

import numpy as np
import pytest
from tests.service.logs import month, problem

import stagewise as sw
from stagewise.problem.errors import InvalidProblem
from stagewise.service.fold import Fold
from stagewise.service.versions import first, following, said


def limits(**opt_out: Any) -> dict[str, sw.Limit]:
    told = {"value": 0.05, "safe": 0.001, "window": "7d", **opt_out}
    return {"opt_out": sw.Limit(**told), "complaint": problem().limits["complaint"]}


def test_a_limit_may_move_and_every_set_stays_what_it_was() -> None:
    before = first(problem())
    after = following(before, problem(limits=limits(value=0.1)))
    log, folds = month(300), [Fold(one.problem, one.number) for one in (before, after)]
    for fold in folds:
        fold.take(log.events)
    old, new = (fold.state.memory for fold in folds)
    assert np.array_equal(old, new)
    loose = Fold(problem(limits=limits(value=0.1)), 1)  # chosen at first, it would have sets of its own
    loose.take(log.events)
    assert not np.array_equal(loose.state.memory, old)


def test_a_limit_that_moves_moves_no_set_where_only_another_has_an_expected_rate() -> None:
    """What is declared of one limit leaves the sets of the others where the first version had them."""
    told = {"settings": {"expected": {"complaint": 0.01}}}
    one = first(problem(**told))
    two = following(one, problem(limits=limits(value=0.3), **told))
    three = following(two, problem(limits=limits(value=0.02), **told))
    around = [policy.sharpest(policy.thresholds).tolist() for policy in (v.problem.policy() for v in (one, two, three))]
    assert around == [[0.05, 0.01]] * 3


def test_actions_may_come_and_go_and_come_back() -> None:
    one = first(problem())
    two = following(one, problem(actions=["nothing", "offer", "sale"]))
    assert (list(two.problem.actions), two.retired) == (["nothing", "digest", "offer", "sale"], {"digest"})
    three = following(two, problem(actions=["nothing", "digest", "offer", "sale"]))
    assert three.retired == frozenset()
    assert three.problem.policy().launched == 3
    fold = Fold(three.problem, 3)
    fold.take(month(50).events)
    assert fold.learned >= 100


def test_what_is_told_of_a_version_can_be_said_again_in_any_order() -> None:
    """Whoever asks for a problem and sends it back with a change has its names in another order."""
    two = following(first(problem()), problem(actions=["nothing", "offer", "sale"]))
    plain = said(two)
    assert plain["actions"] == ["nothing", "offer", "sale"]
    assert plain["settings"] == {}
    turned = {key: dict(reversed(value.items())) if isinstance(value, dict) else value for key, value in plain.items()}
    turned["limits"]["opt_out"] = {**turned["limits"]["opt_out"], "at_most": 0.03}
    three = following(two, sw.Problem.from_plain(turned))
    assert [name for name, limit in three.problem.limits.items() if limit.value == 0.03] == ["opt_out"]
    assert three.retired == {"digest"}
    assert list(three.problem.limits) == list(two.problem.limits)
    assert three.problem.ranges == two.problem.ranges


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"delta": 0.1}, "delta cannot change"),
        ({"context": {"age": (0, 120), "tenure": (-1, 1)}}, "context cannot change"),
        ({"reward": sw.Reward("click", high=2.0)}, "reward cannot change"),
        ({"safe": "digest"}, "safe cannot change"),
        ({"limits": limits(safe=0.002)}, "the safe of 'opt_out' cannot change"),
        ({"limits": limits(window="8d")}, "the window of 'opt_out' cannot change"),
        ({"limits": limits(value=sw.AtLeast(0.0005))}, "'opt_out' cannot change from at most"),
        ({"limits": {"opt_out": sw.Limit(0.05, safe=0.001, window="7d")}}, "the limits' names cannot change"),
        ({"settings": {"spread": 0.5}}, "settings cannot change"),
        ({"settings": {"expected": {"opt_out": 0.01}}}, "settings.expected cannot change"),
        ({"settings": {"launched": 2}}, "settings.launched cannot change"),
    ],
)
def test_what_sets_are_made_of_cannot_be_chosen_after_looking(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidProblem, match=words) as refusal:
        following(first(problem()), problem(**changed))
    assert "voids the guarantee" in str(refusal.value)
