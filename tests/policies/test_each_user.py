"""Limits promised to each user, in everything a problem does: by hand, batches, replicas, files, the server."""

from typing import Any

import numpy as np
import pytest
from tests.server.logs import month
from tests.server.logs import problem as served

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.models.logistic_fit import compute_row_price
from stagewise.policies.problem_policy import choose_batch
from stagewise.records.random_key import RandomKey
from stagewise.server.controls import build_first_version, build_next_version
from stagewise.server.state_fold import StateFold

FORMS = pytest.mark.parametrize("form", ["linear", "logistic"])
ROW_PRICE = as_python(compute_row_price)
LIMIT = 0.06
HEAVY = {"linear": lambda u: 0.03 + 0.025 * u, "logistic": lambda u: 1.0 / (1.0 + np.exp(3.6 - 1.4 * u))}


def declare(form: Any) -> sw.Problem:
    """The offer's opt-outs grow with what a user was sent; the plain message costs a hundredth."""
    return sw.Problem(
        action_names=["plain", "offer"], safe_name="plain", context={"sends": (0, 20)}, reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(LIMIT, safe_bound=0.01, model=form)},
    )  # fmt: skip


def log(form: str, rows: int) -> dict[str, Any]:
    """Return a log of both messages by lot."""
    rng = np.random.default_rng(6)
    sends, offer = rng.uniform(0.0, 20.0, rows), rng.random(rows) < 0.7
    costs = np.where(offer, HEAVY[form](sends / 10.0 - 1.0), 0.008)
    return {
        "action": np.where(offer, "offer", "plain"), "sends": sends,
        "click": (rng.random(rows) < np.where(offer, 0.3, 0.1)) * 1.0, "opt_out": (rng.random(rows) < costs) * 1.0,
    }  # fmt: skip


@FORMS
def test_a_problem_does_all_it_does_and_no_user_is_over(form: str, tmp_path: Any) -> None:
    problem = declare(form)
    agent = sw.Agent(problem, seed=1)
    agent.learn_log_frame(log(form, 4000))
    policy, users = problem.policy(), [{"sends": float(sends)} for sends in np.linspace(0.0, 20.0, 15)]
    contexts = [problem.encode_context(user) for user in users]
    draws = [RandomKey(seed=4, round=i) for i in range(len(users))]
    batch = choose_batch(policy, agent.state, contexts, draws)
    shares = []
    for user, context, draw, one in zip(users, contexts, draws, batch, strict=True):
        assert one is not None
        assert one.odds == list(policy.choose(agent.state, context, draw).probabilities.values())  # type: ignore[attr-defined]
        offered = one.odds[1]
        assert offered * HEAVY[form](user["sends"] / 10.0 - 1.0) + (1.0 - offered) * 0.01 <= LIMIT
        shares.append(offered)
    assert shares[0] == 1.0
    assert shares[-1] < 1.0  # with the offer alone the last user would be over
    replica = sw.Replica(agent.replica_snapshot(), name="a")
    assert replica.decide(users[3]).limits == agent.decide(users[3]).limits
    agent.save(tmp_path / "agent.json")
    again = sw.Agent.load(tmp_path / "agent.json", problem)
    assert again.decide(users[-1]).limits == agent.decide(users[-1]).limits
    assert "every user" in str(agent.decide(users[5]).explain())
    assert "every user" in str(agent.report())
    assert agent.health()
    agent.add_action("sale")
    decision = agent.decide({"sends": 3.0})
    agent.learn(decision.id, click=1.0, opt_out=0.0)
    assert decision.probabilities["sale"] == 0.0


@FORMS
def test_a_log_and_its_rows_one_by_one_tell_the_same_rates(form: str) -> None:
    content, problem = log(form, 1500), declare(form)
    by_log = sw.Agent(problem, seed=1)
    by_log.learn_log_frame(content)
    policy = problem.policy()
    indices = (content["action"] == "offer").astype(float)
    rows = np.column_stack([indices, np.ones(1500), content["sends"] / 10.0 - 1.0])
    state = policy.learn_rows(policy.start(), rows, np.column_stack([content["click"], content["opt_out"]]))
    totals = [policy.compute_totals(one) for one in (by_log.state, state)]
    assert np.array_equal(totals[0].pulls, totals[1].pulls)
    assert totals[0].sums == pytest.approx(totals[1].sums)
    assert totals[0].sums[1].sum() == content["opt_out"].sum()
    user = problem.encode_context({"sends": 4.0})
    ends = [policy.choose(one, user, RandomKey()).limits["opt_out"].estimate for one in (by_log.state, state)]  # type: ignore[attr-defined]
    assert ends[0] == pytest.approx(ends[1], rel=0.2)


@FORMS
def test_a_server_learns_it_and_does_not_move_the_limit_that_its_prior_stands_on(form: Any) -> None:
    def limits(value: float) -> dict[str, sw.Limit]:
        return {
            "opt_out": sw.Limit(value, safe_bound=0.001, window="7d", model=form),
            "complaint": served().limits["complaint"],
        }

    first = build_first_version(served(limits=limits(0.05)))
    fold = StateFold(first.problem, first.number)
    fold.take(month(200).events)
    assert fold.learned.update_count > 300
    assert fold.policy.compute_totals(fold.learned.state).pulls[1].sum() > 100
    with pytest.raises(sw.InvalidProblem) as found:
        build_next_version(first, served(limits=limits(0.06)))
    assert found.value.code is sw.ErrorCode.CHANGE_NOT_ALLOWED


def test_a_wide_prior_has_a_price_that_is_a_number() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for variance in (59.0, 61.0, 1e4, 1e9):
        for p in (1e-6, 0.02, 0.5, 0.98):
            exact = np.logaddexp(np.log1p(-p), np.log(p) + np.sqrt(variance) * nodes) @ (weights / weights.sum())
            assert exact * 0.97 <= ROW_PRICE(p, variance) < 1e5
    wide = sw.SafeContextPosteriorSampling(
        actions=2, context=3, reward_model="rates", cost_model="logistic", slope_scale=300.0, threshold=0.1,
        safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.01),
    )  # fmt: skip
    state = wide.learn_log(wide.start(), np.tile([1.0, 1.0, 0.5, -0.5, 1.0], (40, 1)), np.zeros((40, 2)))
    assert wide.decide(state, sw.ContextVector([1.0, 1.0, -1.0])).pessimistic_cost[0] <= 0.1


@pytest.mark.long
@FORMS
def test_a_forecast_plays_it(form: str) -> None:
    made = sw.forecast_from_log(log(form, 1200), declare(form), users_per_day=4, days=1, runs=38)
    assert "opt_out" in str(made)
    assert made.to_dict()["runs"] == 38
