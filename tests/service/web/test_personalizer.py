"""Clients of Azure Personalizer: bodies in the shape that its reference documents (REST API v1.0)."""

import asyncio
import json
from typing import Any

from tests.service.web.client import Answered
from tests.service.web.place import Place, opened

from stagewise.service.web.app import Settings

RANK = "/personalizer/v1.0/rank"
MORNING = b"""
{
  "contextFeatures": [
    {"user": {"profileType": "AnonymousUser", "age": 34, "latLong": "47.6,-122.1"}},
    {"environment": {"dayOfMonth": "28", "monthOfYear": "8", "weather": "Sunny"}},
    {"device": {"mobile": true, "windows": true}},
    {"recentActivity": {"itemsInCart": 3}}
  ],
  "actions": [
    {"id": "nothing", "features": [{"kind": "none"}]},
    {"id": "digest", "features": [{"kind": "mail", "length": "long"}, {"score": 0.25}]},
    {"id": "offer", "features": []}
  ],
  "excludedActions": ["digest"],
  "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
  "deferActivation": false
}
"""
EVENT = "/personalizer/v1.0/events/75269AD0-BFEE-4598-8196-C57383D38E10"


async def ranked(place: Place, **changes: Any) -> Answered:
    """Send the rank request, with other fields."""
    body = {**json.loads(MORNING), **changes}
    return await place.writer.post(RANK, {name: value for name, value in body.items() if value is not ...})


def test_a_rank_is_a_decision() -> None:
    async def play() -> None:
        async with opened() as place:
            client = place.writer.holding(place.writer.key, "ocp-apim-subscription-key")
            sent = await client.send("POST", RANK, MORNING, kind="application/json; charset=utf-8")
            assert sent.status == 201
            assert sent.plain == {
                "ranking": [
                    {"id": "nothing", "probability": 1.0},
                    {"id": "offer", "probability": 0.0},
                    {"id": "digest", "probability": 0.0},
                ],
                "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
                "rewardActionId": "nothing",
            }
            (row,) = place.store.log
            assert json.loads(bytes.fromhex(json.loads(row.body)["sent"])) == {
                "context": {"age": 34},
                "only": ["nothing", "offer"],
                "decision_id": "75269AD0-BFEE-4598-8196-C57383D38E10",
            }
            assert (await client.send("POST", RANK, MORNING)).content == sent.content  # a retry is answered the same

    asyncio.run(play())


def test_a_reward_is_the_problems_reward_and_no_cost_is_made_up() -> None:
    async def play() -> None:
        async with opened() as place:
            await ranked(place)
            sent = await place.writer.send("POST", f"{EVENT}/reward", b'{"value": 1}')
            assert (sent.status, sent.content) == (204, b"")
            assert list(place.desk.told.values()) == [{"click": 1.0}]  # of opt_out nothing is said: its window tells
            assert (await place.writer.post(f"{EVENT}/reward", {"value": 0.5})).status == 409
            assert (await place.writer.post(f"{EVENT}/reward", {"value": 7})).status == 422
            assert (await place.writer.post(f"{EVENT}/reward", {})).status == 422
            unknown = await place.writer.post("/personalizer/v1.0/events/nobody/reward", {"value": 1})
            assert (unknown.status, unknown.plain["error"]["code"]) == (404, "ResourceNotFound")

    asyncio.run(play())


def test_a_deferred_rank_is_told_as_deferred_and_activated_later() -> None:
    async def play() -> None:
        async with opened() as place:
            await ranked(place, deferActivation=True)
            (row,) = place.store.log
            assert json.loads(bytes.fromhex(json.loads(row.body)["sent"]))["deferred"] is True
            assert (await place.writer.send("POST", f"{EVENT}/activate", kind=None)).status == 204
            assert list(place.desk.told.values()) == [{"shown": True}]
            assert (await place.writer.send("POST", f"{EVENT}/activate", kind=None)).status == 204

    asyncio.run(play())


def test_what_may_be_left_out() -> None:
    async def play() -> None:
        async with opened() as place:
            sent = await ranked(place, excludedActions=..., eventId=None, deferActivation=None)
            assert sent.status == 201
            assert sent.plain["eventId"]
            for age in ({"age": 34}, {"user": {"deep": {"age": 34}}}):
                assert (await ranked(place, contextFeatures=[age], eventId=...)).status == 201

    asyncio.run(play())


def test_what_cannot_be_ranked_is_refused_in_that_apis_form() -> None:
    async def play() -> None:
        async with opened() as place:
            for changes, words in (
                ({"actions": [{"id": "nothing"}, {"id": "NewsArticle"}]}, "'NewsArticle' is no action"),
                ({"actions": [{"id": "offer"}]}, "safe action must always be on offer"),
                ({"excludedActions": ["nothing"]}, "safe action must always be on offer"),
                ({"actions": []}, "length >= 1"),
                ({"actions": ...}, "missing required field `actions`"),
                ({"contextFeatures": []}, "lacks 'age'"),
                ({"contextFeatures": [{"age": [34]}]}, "must be a number, text"),
                ({"contextFeatures": [{"age": 34}, {"user": {"age": 35}}]}, "both 34 and 35"),
                ({"contextFeatures": [{"age": 1e9}]}, "outside [18, 99]"),
                ({"eventId": "x" * 257}, "length <= 256"),
            ):
                sent = await ranked(place, **{"eventId": None, **changes})
                assert (sent.status, sent.plain["error"]["code"]) == (422, "BadRequest")
                assert words in sent.plain["error"]["message"]
            assert place.store.log == []

    asyncio.run(play())


def test_when_the_store_is_away_the_safe_action_is_ranked_first_and_503() -> None:
    async def play() -> None:
        async with opened() as place:
            place.store.down = True
            sent = await ranked(place)
            assert (sent.status, sent.plain["rewardActionId"]) == (503, "nothing")
            assert sent.plain["error"]["code"] == "ServiceUnavailable"

    asyncio.run(play())


def test_the_experiment_is_the_only_one_or_the_one_that_is_set() -> None:
    async def play() -> None:
        async with opened(names=("a", "b")) as place:
            sent = await ranked(place)
            assert (sent.status, "there are 2 experiments" in sent.plain["error"]["message"]) == (409, True)
        async with opened(Settings(personalizer="b", log=False), names=("a", "b")) as place:
            assert (await ranked(place)).status == 201
        async with opened(Settings(personalizer="c", log=False), names=("a", "b")) as place:
            assert (await ranked(place)).status == 404

    asyncio.run(play())
