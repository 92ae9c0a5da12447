"""The users of `stagewise serve --demo`, for a problem that learns no reward."""

from types import SimpleNamespace
from typing import Any

import stagewise as sw
from stagewise.cli.demo import Population, UserStream
from stagewise.server.client import DecisionRequest, DecisionResponse

LIMITS = {"opt_out": sw.Limit(0.1, safe_bound=0.0, by="country")}
GUARD = sw.Problem(
    action_names=["nothing", "digest", "offer"], safe_name="nothing", context={"age": (18, 99)}, limits=LIMITS
)


def test_users_of_a_guard_come_with_proposals_and_report_no_reward() -> None:
    agent, asked, reported = sw.Agent(GUARD, seed=1), list[DecisionRequest](), list[dict[str, Any]]()

    def decide_many(requests: list[DecisionRequest]) -> list[Any]:
        asked.extend(requests)
        decisions = [agent.decide(one.context, propose=one.propose, scores=one.scores) for one in requests]
        fields: dict[str, Any] = {"logged": True}
        answers = [{"decision_id": one.id, "action": one.action} | fields for one in decisions]
        return [DecisionResponse(**dict.fromkeys(DecisionResponse._fields) | answer) for answer in answers]

    client: Any = SimpleNamespace(decide_many=decide_many, learn_many=reported.extend)
    stream = UserStream(Population(GUARD, seed=3), client, seed=5)
    stream.step(30, 0.0)
    stream.step(0, 1e9)
    assert {name for one in asked for name in (one.propose or {})} == {"digest", "offer"}
    signals = {name for one in reported for name in one} - {"decision_id", "shown"}
    assert signals == {"opt_out"}
    for one in reported:
        if "opt_out" in one:
            agent.learn(one["decision_id"], opt_out=one["opt_out"])
    assert agent.pending_count < 30


def test_users_have_the_score_that_a_limit_is_kept_by() -> None:
    limits = {"opt_out": sw.Limit(0.1, safe_bound=0.0, score="risk")}
    problem = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", context={"age": (18, 99)}, limits=limits
    )
    population = Population(problem, seed=3)
    contexts = [population.user(number) for number in range(200)]
    assert len({problem.encode_context(one, propose="offer").segments[0] for one in contexts}) == 10
