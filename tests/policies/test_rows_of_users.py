"""The row of a user is one thing, whoever makes it: a decision, a frame, the log of a desk."""

import numpy as np

import stagewise as sw
from stagewise.policies.context_encoder import build_rows, scale_numbers

PROBLEM = sw.Problem(
    action_names=["nothing", "offer", "sale"], safe_name="nothing", context={"age": (18, 99), "spent": (-1.3, 0.7)},
    reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, by="country")},
)  # fmt: skip


def test_rows_of_many_users_are_those_of_each_alone_to_the_bit() -> None:
    chance, policy = np.random.default_rng(4), PROBLEM.policy()
    ages, spent = chance.uniform(18.0, 99.0, 500), chance.uniform(-1.3, 0.7, 500)
    ages[:2], spent[:2] = (18.0, 99.0), (-1.3, 0.7)
    countries, done = chance.choice(["AT", "DE", "FR"], 500).tolist(), chance.integers(0, 3, 500).tolist()
    columns = {"age": ages, "spent": spent, "country": countries}
    rows = build_rows(done, PROBLEM.encode_columns({name: np.array(one) for name, one in columns.items()}, 500))
    for i in range(500):
        user = PROBLEM.encode_context({"age": ages[i], "spent": spent[i], "country": countries[i]})
        assert np.array_equal(rows[i], policy.rows_for(user)[done[i]])
        again = policy.context_in(rows[i])
        assert np.array_equal(again.features, user.features)
        assert np.array_equal(again.segments, user.segments)


def test_the_ends_of_a_range_do_not_round_beyond_one() -> None:
    lows, highs = np.random.default_rng(5).uniform(-3.0, 3.0, (2, 1000))
    for low, high in zip(np.minimum(lows, highs), np.maximum(lows, highs), strict=True):
        assert np.abs(scale_numbers(np.array([low, high]), low, high)).max() <= 1.0
