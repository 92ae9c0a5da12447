"""What is played on people whose outcomes are known: rates of groups, written policies, agents, the best possible."""

from dataclasses import replace

import numpy as np
from tests.studies.people import six

import stagewise as sw
from stagewise_studies import tally
from stagewise_studies.replay import Learner, always, find_best_under, is_over_limit


def problem(limit: float) -> sw.Problem:
    reward, limits = sw.Reward("good", by="group"), {"bad": sw.Limit(limit, safe_bound=0.0, by="group")}
    return sw.Problem(action_names=["none", "some"], safe_name="none", reward=reward, limits=limits)


def test_rates_are_those_of_the_group_and_of_whom_an_action_is_offered_to() -> None:
    people = six()
    np.testing.assert_allclose(people.rates("group", people.cost)[:, 1], [0.0] * 3 + [2 / 3] * 3)
    np.testing.assert_allclose(people.rates("all", people.cost)[:, 1], 1 / 3)
    offered = np.ones((6, 2), dtype=bool)
    offered[5, 1] = False
    fewer = replace(people, offered=offered)
    np.testing.assert_allclose(fewer.rates("group", people.cost)[:, 1], [0.0] * 3 + [0.5] * 3)


def test_a_written_policy_is_over_where_its_group_is() -> None:
    track = always(six(), "some").play(six(), 200, seed=3)
    ill = track.people >= 3
    assert ill.any()
    assert (~ill).any()
    np.testing.assert_array_equal(is_over_limit(track, "group", 0.5), ill)
    assert not is_over_limit(track, "all", 0.5).any()
    np.testing.assert_allclose(track.cost, six().cost[track.people, 1])


def test_the_best_mixes_two_actions_up_to_the_limit() -> None:
    best = find_best_under(six(), "group", 0.2, "none")
    np.testing.assert_allclose(best.shares, [[0.0, 1.0]] * 3 + [[0.7, 0.3]] * 3)


def test_where_nothing_keeps_the_limit_the_best_is_the_safe_action() -> None:
    people = six()
    dear = replace(people, cost=np.ones((6, 2)))
    np.testing.assert_allclose(find_best_under(dear, "group", 0.2, "none").shares, [[1.0, 0.0]] * 6)


def test_an_agent_learns_what_it_did_and_is_judged_by_what_is_known() -> None:
    people = six()
    track = Learner(problem(0.3)).play(people, 600, seed=1)
    assert track.pessimistic_costs is not None
    assert track.fallbacks is not None
    assert track.pessimistic_costs.max() <= 0.3 + 1e-9
    assert not is_over_limit(track, "group", 0.3).any()
    assert track.reward[-100:].mean() > track.reward[:100].mean()  # it dares more when it knows more
    np.testing.assert_allclose(track.rates["group"][track.people < 3], 0.0)


def test_an_agent_is_given_only_what_is_on_offer() -> None:
    offered = np.ones((6, 2), dtype=bool)
    offered[:, 1] = False
    people = replace(six(), offered=offered)
    track = Learner(problem(0.3)).play(people, 50, seed=1)
    assert not track.reward.any()
    assert not track.cost.any()


def test_all_policies_of_a_seed_meet_the_same_people() -> None:
    played = tally.simulate_policies(six(), {"one": always(six(), "none"), "two": Learner(problem(0.3))}, 2, 40)
    for one, two in zip(played["one"], played["two"], strict=True):
        np.testing.assert_array_equal(one.people, two.people)
    assert not np.array_equal(played["one"][0].people, played["one"][1].people)
