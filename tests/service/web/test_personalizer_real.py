"""Clients of Azure Personalizer at a desk on a port: bytes in the shapes that its reference and its guides show."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.service.web.live import Live, live

import stagewise as sw

COFFEE = b"""{
  "contextFeatures": [
    {"timeOfDay": "Morning"},
    {"weather": "Snowy", "temperature": -3.5}
  ],
  "actions": [
    {"id": "Cappucino", "features": [{"type": "hot", "origin": "kenya", "organic": "yes", "roast": "dark"}]},
    {"id": "Cold brew", "features": [{"type": "cold", "origin": "brazil", "organic": "yes", "roast": "light"}]},
    {"id": "Latte", "features": [{"type": "hot", "origin": "brazil", "organic": "no", "roast": "dark"}]},
    {"id": "nothing", "features": [{"type": "none"}]}
  ],
  "excludedActions": [],
  "eventId": "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
  "deferActivation": false
}"""
NAMESPACES = b"""{
  "contextFeatures": [
    {"user": {"profileType": "AnonymousUser", "latlong": ["47.6,-122.1"]}},
    {"environment": {"dayOfMonth": "28", "timeOfDay": "13:00", "weather": "sunny", "temperature": 31}},
    {"device": {"mobile": true, "Windows": true}},
    {"recentActivity": {"itemsInCart": 3}},
    {"_embedding": {"sentence": [0.25, -1.5, 3e-05], "language": null}}
  ],
  "actions": [
    {"id": "nothing", "features": []},
    {"id": "Latte", "features": [{"drink": {"hot": true, "price": 3.25}}, {"tags": ["milk", "large"]}]}
  ],
  "excludedActions": ["Latte"],
  "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
  "deferActivation": null
}"""
SHORT = (
    b'{"contextFeatures":[{"temperature":12}],'
    b'"actions":[{"id":"Cold brew","features":[]},{"id":"nothing","features":[]}]}'
)
NULLS = (
    b'{"contextFeatures": [{"temperature": 12.0}], "actions": [{"id": "nothing", "features": [{}]}, '
    b'{"id": "Latte", "features": [{"size": null}]}], '
    b'"excludedActions": null, "eventId": null, "deferActivation": true}'
)
BODIES = {"coffee": COFFEE, "namespaces": NAMESPACES, "short": SHORT, "nulls": NULLS}
READ: dict[str, dict[str, Any]] = {
    "coffee": {"context": {"temperature": -3.5}, "only": ["Cappucino", "Cold brew", "Latte", "nothing"]},
    "namespaces": {"context": {"temperature": 31}, "only": ["nothing"]},
    "short": {"context": {"temperature": 12}, "only": ["Cold brew", "nothing"]},
    "nulls": {"context": {"temperature": 12.0}, "only": ["nothing", "Latte"], "deferred": True},
}
"""What is in the log of each."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A desk of a shop, on a port."""
    limits = {"complaint": sw.Limit(0.1, safe=0.0, window="1d")}
    actions = ["nothing", "Cappucino", "Cold brew", "Latte"]
    told: Any = {"actions": actions, "safe": "nothing", "context": {"temperature": (-40, 60)}, "limits": limits}
    with live(tmp_path_factory.mktemp("desk"), sw.Problem(**told, reward=sw.Reward("bought", window="1h"))) as there:
        yield there


def sent(desk: Live, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Send bytes as these clients do, the key in a header of its own; return the status and what is answered."""
    connection = http.client.HTTPConnection(desk.address.removeprefix("http://"), timeout=20)
    headers = {"Ocp-Apim-Subscription-Key": desk.writer} | (
        {} if body is None else {"Content-Type": "application/json"}
    )
    try:
        connection.request("POST", f"/personalizer/v1.0/{path}", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("name", BODIES)
def test_a_rank_is_answered_logged_and_rewarded(desk: Live, name: str) -> None:
    body = json.loads(BODIES[name])
    status, content = sent(desk, "rank", BODIES[name])
    told = json.loads(content)
    assert (status, set(told)) == (201, {"ranking", "eventId", "rewardActionId"})
    event = told["eventId"]
    assert event == (body.get("eventId") or event)
    assert told["ranking"][0]["id"] == told["rewardActionId"]
    assert sorted(one["id"] for one in told["ranking"]) == sorted(one["id"] for one in body["actions"])
    assert sum(one["probability"] for one in told["ranking"]) == pytest.approx(1.0)
    assert told["rewardActionId"] not in (body.get("excludedActions") or [])
    if body.get("eventId"):
        assert sent(desk, "rank", BODIES[name]) == (201, content)  # a retry
    row = desk.desk.store.find("demo", "decision", event)
    assert row is not None
    assert json.loads(row.body)["asked"] == READ[name]
    assert json.loads(row.body)["action"] == told["rewardActionId"]
    assert sent(desk, f"events/{event}/activate") == (204, b"")
    for _ in range(2):
        assert sent(desk, f"events/{event}/reward", b'{ "value": 1.0 }') == (204, b"")
    assert sent(desk, f"events/{event}/reward", b'{"value": 0}')[0] == 409
    rows = [json.loads(it.body) for it in desk.desk.store.events("demo") if it.kind == "outcome"]
    assert [it["values"] for it in rows if it["of"] == event] == [{"shown": 1.0}, {"bought": 1.0}]


def test_what_is_sent_for_nobody_is_refused_in_that_apis_form(desk: Live) -> None:
    status, content = sent(desk, "events/nobody/reward", b'{"value": 1}')
    assert (status, json.loads(content)["error"]["code"]) == (404, "ResourceNotFound")
    status, content = sent(desk, "rank", COFFEE.replace(b'"Latte"', b'"Tea"'))
    assert (status, json.loads(content)["error"]["code"]) == (422, "BadRequest")
    assert "'Tea' is no action" in json.loads(content)["error"]["message"]
