"""Proposals and scores over the server: answers, the log, retries, shadow mode, the kill switch and replay."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.logs import problem
from tests.server.server_helpers import NAME, learned, played, serve_problem

from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome
from stagewise.server.audit.replay import Replay, explain_logged_decision
from stagewise.server.controls import Controls
from stagewise.server.decide import decide, decode_decision, describe_decision
from stagewise.server.messages import UNSET, Conflict, DecisionRequest, OutcomeUpdate, ProposalResult
from stagewise.server.snapshots import build_initial_snapshot
from stagewise.server.web.metrics import render_metrics
from stagewise.server.web.page.verdict import build_verdict

PERSON = {"age": 40.0, "tenure": 0.25, "country": "NZ"}
HALF = {"offer": 0.5, "digest": 0.25}
SCORES = {"offer": 0.9, "digest": 0.4}


def request(id_: str, **fields: Any) -> DecisionRequest:
    return DecisionRequest(PERSON, decision_id=id_, **fields)


async def ask(server: Any, id_: str, **fields: Any) -> Any:
    return await server.decide(NAME, request(id_, **fields))


@played
async def test_an_answer_says_what_became_of_the_proposal(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        answer = await ask(server, "a", propose=HALF)
        assert answer.probabilities["nothing"] > 0.25
        rest = {name: weight - answer.probabilities[name] for name, weight in HALF.items()}
        assert answer.proposal.held_back == pytest.approx(rest)
        assert answer.proposal.overlap == pytest.approx(1.0 - sum(rest.values()))
        assert answer.proposal.binding
        body = decode_decision(server.store.find(NAME, "decision", "a").body)
        assert body.request["propose"] == HALF
        assert body.proposal == answer.proposal
        scored = await ask(server, "b", scores=SCORES)
        assert scored.proposal.overlap is None
        plain = await ask(server, "c")
        assert plain.proposal is UNSET
        assert "proposal" not in msgspec.json.decode(server.store.find(NAME, "decision", "c").body)
        assert "binds" in " ".join(describe_decision(problem(), server.store.find(NAME, "decision", "a")))


@played
async def test_a_retry_repeats_the_answer_and_another_proposal_is_a_conflict(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        first = await ask(server, "a", propose=HALF)
        assert await ask(server, "a", propose=HALF) == first
        others: list[dict[str, Any]] = [{"propose": "offer"}, {"propose": {"offer": 0.5}}, {"scores": SCORES}, {}]
        for other in others:
            with pytest.raises(Conflict) as caught:
                await ask(server, "a", **other)
            assert caught.value.code is ErrorCode.CONFLICT
        await ask(server, "b")
        with pytest.raises(Conflict):
            await ask(server, "b", propose="offer")


@played
async def test_wrong_proposals_are_rejected_and_not_logged(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        before = server.store.head(NAME).seq
        wrong: list[dict[str, Any]] = [
            {"propose": "ofer"},
            {"propose": {"offer": 0.8, "digest": 0.4}},
            {"propose": {"offer": -0.1}},
            {"propose": {}},
            {"propose": "offer", "only": ["digest"]},
            {"scores": {"offer": 0.5}},
            {"scores": SCORES, "propose": "offer"},
        ]
        for fields in wrong:
            with pytest.raises(InvalidActions):
                await ask(server, "a", **fields)
        assert server.store.head(NAME).seq == before
        assert (await ask(server, "a", propose="offer")).logged


@played
async def test_every_decision_with_a_proposal_is_replayed_to_the_bit(tmp_path: Path) -> None:
    """Live, in shadow mode, in a canary and while killed, in batches and alone, with outcomes between."""
    async with serve_problem(tmp_path) as server:
        given: list[dict[str, Any]] = [{"propose": "digest"}, {"propose": HALF}, {"scores": SCORES}, {}]
        for turn, mode in enumerate(("live", "shadow", "canary", "live")):
            await server.set_mode(NAME, mode, 0.5 if mode == "canary" else None, "ada", "a test")
            if turn == 3:
                await server.kill(NAME, "ada", "a test")
            requests = [request(f"{turn}-{i}", **given[i % 4]) for i in range(12)]
            answers: Any = await server.decide_many(NAME, requests)
            for answer in answers:
                await server.learn(NAME, outcome(answer.decision_id))
            await learned(server)
        store = server.store
        for id_, overlap in (("1-1", 0.25), ("3-1", 0.25), ("1-0", 0.0)):
            body = decode_decision(store.find(NAME, "decision", id_).body)
            assert (body.action, body.proposal.overlap) == ("nothing", pytest.approx(overlap))
            if id_.startswith("1"):
                assert body.policy_choice is not None
                assert isinstance(body.policy_choice.proposal, ProposalResult)
                assert body.policy_choice.proposal.overlap >= overlap
        result = Replay(store, NAME).run()
        assert result.first_difference is None
        assert (result.decisions, result.matching) == (48, 48)
        assert "proposed" in explain_logged_decision(store, NAME, "0-1")


def outcome(id_: str) -> OutcomeUpdate:
    return OutcomeUpdate(id_, {"click": 1.0, "opt_out": 0.0})


def test_a_batch_of_proposals_is_the_same_as_one_by_one() -> None:
    snapshot, live = build_initial_snapshot(problem(), 1, frozenset()), Controls(mode="live")
    given: list[dict[str, Any]] = [{"propose": "digest"}, {"propose": HALF}, {"scores": SCORES}, {}]
    asked = [(f"u{i}", request(f"u{i}", **given[i % 4])) for i in range(20)]
    together = decide(snapshot, live, live, b"k" * 32, asked)
    assert together == [decide(snapshot, live, live, b"k" * 32, [one])[0] for one in asked]


def test_a_retired_action_cannot_be_proposed() -> None:
    snapshot, live = build_initial_snapshot(problem(), 2, frozenset({"digest"})), Controls(mode="live")
    refused, accepted = decide(
        snapshot, live, live, b"k" * 32, [("a", request("a", propose=HALF)), ("b", request("b", propose="offer"))]
    )
    assert isinstance(refused, InvalidActions)
    assert not isinstance(accepted, InvalidActions)


@played
async def test_a_problem_without_a_reward_is_served(tmp_path: Path) -> None:
    """Outcomes, the windows, the figures, the page, the metrics and the replay know the limits alone."""
    content = {name: value for name, value in problem().to_dict().items() if name != "reward"}
    async with serve_problem(tmp_path, Problem.from_dict(content)) as server:
        with pytest.raises(InvalidActions) as caught:
            await ask(server, "a")
        assert caught.value.code is ErrorCode.MISSING_VALUE
        for i in range(12):
            await ask(server, f"u{i}", **({"propose": HALF} if i % 3 else {"scores": SCORES}))
        with pytest.raises(InvalidOutcome):
            await server.learn(NAME, OutcomeUpdate("u0", {"reward": 1.0}))
        for i in range(10):
            answer = await server.learn(NAME, OutcomeUpdate(f"u{i}", {"opt_out": 0.0, "complaint": 0.0}))
            assert sorted(answer.accepted) == ["complaint", "opt_out"]
        await learned(server)
        figures = server.figures(NAME)
        assert figures["reward"] is None
        assert [row["signal"] for row in figures["pending"]] == ["opt_out", "complaint"]
        assert [row["pending_count"] for row in figures["pending"]] == [2, 2]
        shown = {one["action"]: one for one in figures["proposals"]}
        assert set(shown) == {"digest", "offer"}
        assert shown["offer"]["proposed"] == 0.5
        assert 0.0 < shown["offer"]["overlap"] < 1.0
        assert shown["offer"]["decisions_until_whole"] > shown["offer"]["plays_until_whole"] > 10
        text = render_metrics(server)
        assert f'stagewise_proposal_overlap{{experiment="{NAME}",action="offer"}} {shown["offer"]["overlap"]!r}' in text
        assert f'stagewise_proposal_decisions_until_whole{{experiment="{NAME}",action="offer"}}' in text
        assert build_verdict(figures).answers[2].word.endswith("of proposals played")
        unrewarded = decode_decision(server.store.find(NAME, "decision", "u1").body)
        assert (unrewarded.estimated_reward, unrewarded.optimistic_reward) == (None, None)
        assert decode_decision(server.store.find(NAME, "decision", "u0").body).estimated_reward is not None
        assert "reward" not in explain_logged_decision(server.store, NAME, "u1")
        result = Replay(server.store, NAME).run()
        assert (result.first_difference, result.decisions, result.matching) == (None, 12, 12)
