"""The page without a browser: who comes in, what a form may change, what is told of the figures."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.server.page.known import PROBLEM, FakeKeys, KnownDesk, campaign
from tests.server.page.visitor import Visitor
from tests.server.rows import Log, feared

import stagewise as sw
from stagewise.server.web.page.render import render_explanation
from stagewise.server.web.page.routes import build_page_routes
from stagewise.server.web.page.sessions import SESSION_HOURS, SessionManager
from stagewise.server.web.page.verdict import build_verdict

ADMIN, READER = "sw_ada_secret", "sw_eve_secret"
HOSTILE = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def log() -> Log:
    return campaign(600)


@pytest.fixture
def desk(log: Log) -> KnownDesk:
    return KnownDesk({"notes": log, "empty": Log(PROBLEM, 1.8e9)})


def client_of(desk: Any, keys: Any = None, scheme: str = "http", public: str = "") -> Visitor:
    return Visitor(Starlette(routes=build_page_routes(desk, keys or FakeKeys(), bytes(32), public=public)), scheme)


def logged_in(desk: Any, key: str = ADMIN, **told: Any) -> Visitor:
    client = client_of(desk, **told)
    assert client.post("/login", data={"key": key}).status_code == 303
    return client


def token_of(client: Visitor, path: str = "/e/notes") -> str:
    found = re.search(r'name="token" value="([0-9a-f]{64})"', client.get(path).text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("path", ["/", "/e/notes", "/e/notes/data.json", "/e/notes/decisions/u-00001", "/data.json"])
def test_nothing_is_shown_without_a_session(desk: KnownDesk, path: str) -> None:
    answer = client_of(desk).get(path)
    if path.endswith(".json"):
        assert (answer.status_code, answer.json()) == (
            401,
            {"code": "unauthorized", "message": "the session has ended; log in again"},
        )
    else:
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")


def test_every_route_of_the_page_takes_a_session_but_the_door_and_its_files(desk: KnownDesk) -> None:
    open_to_all = set()
    for route in build_page_routes(desk, FakeKeys(), bytes(32)):  # type: ignore[arg-type]
        path = route.path.replace("{experiment:path}", "notes").replace("{decision:path}", "u-00001")
        for method in sorted((route.methods or set()) - {"HEAD"}):
            client = client_of(desk)
            form = {"token": "0" * 64, "reason": "x", "name": "ada", "role": "admin", "mode": "off"}
            answer = client.get(path) if method == "GET" else client.post(path, data=form)
            refused = answer.status_code == 401 or answer.headers.get("location", "").startswith("/login")
            if not refused:
                open_to_all.add((method, route.path))
            assert client.cookies == {}
    assert open_to_all == {("GET", "/login"), ("POST", "/login"), ("GET", "/static/{name}")}
    assert desk.changes == []


@pytest.mark.parametrize("path", ["/kill", "/resume", "/logout", *(f"/e/notes/{what}" for what in ("kill", "mode"))])
def test_nothing_is_changed_without_a_session(desk: KnownDesk, path: str) -> None:
    answer = client_of(desk).post(path, data={"reason": "x", "token": "0" * 64})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert desk.changes == []


def test_a_key_nobody_holds_is_refused(desk: KnownDesk) -> None:
    answer = client_of(desk).post("/login", data={"key": "sw_ada_guess"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert "The key is unknown or revoked." in answer.text


def test_the_cookie_is_for_the_desk_alone(desk: KnownDesk) -> None:
    plain = client_of(desk).post("/login", data={"key": ADMIN}).headers["set-cookie"]
    assert "HttpOnly" in plain
    assert "SameSite=strict" in plain
    assert "Secure" not in plain
    safe = client_of(desk, scheme="https").post("/login", data={"key": ADMIN}).headers["set-cookie"]
    assert safe.startswith("__Host-stagewise=")
    assert "Secure" in safe
    assert ADMIN not in plain


def test_a_session_ends_and_cannot_be_made_up() -> None:
    keys = FakeKeys()
    sessions = SessionManager(b"s" * 32, keys)
    cookie = sessions.create_cookie(ADMIN, 1000.0)
    assert cookie is not None
    assert sessions.parse_cookie(cookie, 1000.0) is not None
    assert sessions.parse_cookie(cookie, 1000.0 + SESSION_HOURS * 3600) is None
    name, until, rest = cookie.split(".", 2)
    for other in (f"eve.{until}.{rest}", f"{name}.{int(until) + 1}.{rest}", cookie[:-1], "", "a.b.c.d", "é.1.2.3"):
        assert sessions.parse_cookie(other, 1000.0) is None
    assert SessionManager(b"t" * 32, keys).parse_cookie(cookie, 1000.0) is None
    del keys.rows["ada"]  # revoked
    assert sessions.parse_cookie(cookie, 1000.0) is None


def test_logging_out_forgets_the_cookie(desk: KnownDesk) -> None:
    client = logged_in(desk)
    answer = client.post("/logout", data={"token": token_of(client)})
    assert answer.headers["location"] == "/login"
    assert client.get("/").status_code == 303


@pytest.mark.parametrize("what", ["kill", "resume", "mode", "acknowledge"])
def test_a_change_takes_the_token_of_the_session(desk: KnownDesk, what: str) -> None:
    client, other = logged_in(desk), logged_in(desk)
    for token in ("", "0" * 64, token_of(other), "é"):
        answer = client.post(f"/e/notes/{what}", data={"reason": "why", "token": token, "mode": "off", "name": "x"})
        assert answer.status_code == 403
        assert "belongs to another session" in answer.text
    assert desk.changes == []


@pytest.mark.parametrize("headers", [{"origin": "https://elsewhere"}, {"sec-fetch-site": "cross-site"}])
def test_a_form_from_elsewhere_changes_nothing(desk: KnownDesk, headers: dict[str, str]) -> None:
    client = logged_in(desk)
    told = {"reason": "why", "token": token_of(client)}
    assert client.post("/e/notes/kill", data=told, headers=headers).status_code == 403
    assert client.post("/login", data={"key": ADMIN}, headers=headers).status_code == 403
    assert desk.changes == []
    assert client.post("/e/notes/kill", data=told, headers={"origin": "http://testserver"}).status_code == 303


def test_a_reader_looks_and_changes_nothing(desk: KnownDesk) -> None:
    client = logged_in(desk, READER)
    page = client.get("/e/notes").text
    assert "do-kill" not in page
    answer = client.post("/e/notes/kill", data={"reason": "why", "token": token_of(client)})
    assert (answer.status_code, desk.changes) == (403, [])
    assert "admin" in answer.text


@pytest.mark.parametrize("reason", ["", "   ", "x" * 2001])
def test_a_change_takes_a_reason(desk: KnownDesk, reason: str) -> None:
    client = logged_in(desk)
    answer = client.post("/e/notes/kill", data={"reason": reason, "token": token_of(client)})
    assert (answer.status_code, desk.changes) == (422, [])


def test_changes_are_told_with_who_and_why(desk: KnownDesk) -> None:
    client = logged_in(desk)
    token = token_of(client)
    forms: list[tuple[str, dict[str, str]]] = [
        ("/e/notes/kill", {"reason": " too many\n complaints "}),
        ("/e/notes/resume", {"reason": "mended"}),
        ("/e/notes/mode", {"reason": "slowly", "mode": "canary", "share": "2.5"}),
        ("/e/notes/mode", {"reason": "all", "mode": "live", "share": "5"}),
        ("/e/notes/acknowledge", {"reason": "known", "name": "safe opt_out"}),
        ("/kill", {"reason": "everything"}),
        ("/resume", {"reason": "again"}),
    ]
    for path, form in forms:
        answer = client.post(path, data={**form, "token": token})
        assert (answer.status_code, answer.headers["location"]) == (303, "/e/notes" if path.startswith("/e") else "/")
    assert desk.changes == [
        ("kill", "notes", "ada", "too many complaints"),
        ("resume", "notes", "ada", "mended"),
        ("mode", "notes", "canary", 0.025, "ada", "slowly"),
        ("mode", "notes", "live", None, "ada", "all"),
        ("acknowledge", "notes", "safe opt_out", "ada", "known"),
        ("kill", None, "ada", "everything"),
        ("resume", None, "ada", "again"),
    ]


def test_a_share_is_a_percentage(desk: KnownDesk) -> None:
    client = logged_in(desk)
    for share in ("", "0", "100", "-3", "nan", "all"):
        form = {"reason": "slowly", "mode": "canary", "share": share, "token": token_of(client)}
        assert client.post("/e/notes/mode", data=form).status_code == 422
    assert desk.changes == []


def test_hostile_forms_are_refused(desk: KnownDesk) -> None:
    client = logged_in(desk)
    url = "application/x-www-form-urlencoded"
    for content, kind, status in [
        (b"reason=x" * 5000, url, 413),
        (b"{}", "application/json", 415),
        (b"\xff\xfe=1", url, 400),
        (b"a=1&" * 100, url, 400),
        (b"token=%ff%fe", url, 400),
    ]:
        answer = client.post("/e/notes/kill", content=content, headers={"content-type": kind})
        assert answer.status_code == status
    assert desk.changes == []


@pytest.mark.parametrize("target", ["https://elsewhere", "//elsewhere", "/\\elsewhere", "javascript:x", "/a\nb", ""])
def test_after_the_door_it_stays_inside(desk: KnownDesk, target: str) -> None:
    answer = client_of(desk).post("/login", data={"key": ADMIN, "next": target})
    assert answer.headers["location"] == "/"


def test_the_door_leads_back_to_a_name_with_signs(log: Log) -> None:
    client = client_of(KnownDesk({"a b?c#d&e%20": log}))
    address = "/e/a%20b%3Fc%23d%26e%2520"
    door = client.get(address).headers["location"]
    found = re.search(r'name="next" value="([^"]+)"', client.get(door).text)
    assert found is not None
    assert found[1] == address
    assert client.post("/login", data={"key": ADMIN, "next": found[1]}).headers["location"] == address
    assert client.get(address).status_code == 200


def test_headers_let_nothing_in_from_elsewhere(desk: KnownDesk) -> None:
    client = logged_in(desk)
    for path in ("/login", "/", "/e/notes", "/e/notes/data.json", "/e/nobody"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
    page = client.get("/e/notes").text
    assert not re.search(r"<script(?![^>]*src=)|\sstyle=|\son\w+=", page)


def test_files_are_kept_for_ever_under_a_name_of_their_content(desk: KnownDesk) -> None:
    client = logged_in(desk)
    names = set(re.findall(r'"(/static/[^"]+)"', client.get("/e/notes").text))
    assert len(names) == 5
    for name in names:
        answer = client_of(desk).get(name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert client.get("/static/page.css").status_code == 404
    assert client.get("/static/..%2f..%2fmount.py").status_code == 404


def test_the_figures_are_on_the_page_and_in_its_data(desk: KnownDesk) -> None:
    client, figures = logged_in(desk), desk.figures("notes")
    told = client.get("/e/notes/data.json").json()
    assert told["figures"]["decisions"] == figures["decisions"] == 600
    assert told["figures"]["limits"]["opt_out"]["observed_mean"] == figures["limits"]["opt_out"]["observed_mean"]
    assert f"{100 * figures['limits']['opt_out']['observed_mean']:.3g} %" in told["parts"]["limit-0"]
    assert "600" in told["parts"]["control"]
    page = client.get("/e/notes").text
    for part in ("Is it safe?", "Is it learning?", "Is it worth it?", "Changes", "no complaints so far"):
        assert part in page


def test_names_with_markup_are_text() -> None:
    problem = sw.Problem(
        action_names=["nothing", HOSTILE], safe_name="nothing", reward=sw.Reward("<b>click</b>"),
        limits={"<i>cost</i>": sw.Limit(0.02, safe_bound=0.0, model="rates")},
    )  # fmt: skip
    log = Log(problem, 1.8e9)
    log.control(1.8e9, "mode", HOSTILE, HOSTILE, mode="live")
    log.decision(1.8e9 + 1, HOSTILE, HOSTILE, reason="custom", details={"message": HOSTILE})
    health = [{"name": HOSTILE, "verdict": "contradicted", "message": HOSTILE}]
    told = {"killed": HOSTILE, "alerts": [{"name": HOSTILE, "message": HOSTILE}], "health": health}
    client = logged_in(KnownDesk({HOSTILE: log}, problem, **told))
    listed = client.get("/").text
    address = re.search(r'href="(/e/[^"]+)"', listed)
    assert address is not None
    pages = [listed, client.get(address[1]).text, *client.get(address[1] + "/data.json").json()["parts"].values()]
    found = re.search(r'data-explain="([^"]+)"', pages[1])
    assert found is not None
    pages.append(client.get(found[1]).text)
    for page in pages:
        assert "<script>alert" not in page
        assert "<b>click" not in page
        assert "<i>cost" not in page
    assert "&lt;script&gt;alert(1)" in pages[1]
    assert "&lt;script&gt;alert(1)" in pages[-1]


def test_a_contradiction_that_was_acknowledged_is_not_called_none() -> None:
    health = [{"name": "safe cost of opt_out", "verdict": "acknowledged", "message": "declared 0, and 3 were seen"}]
    none = "No alerts: the data contradict no declared value."
    assert none in logged_in(KnownDesk({"notes": Log(PROBLEM, 1.8e9)})).get("/e/notes").text
    page = logged_in(KnownDesk({"notes": Log(PROBLEM, 1.8e9)}, health=health)).get("/e/notes").text
    assert none not in page
    assert "No alerts, apart from acknowledged ones." in page


def test_a_decision_is_explained_in_sentences_and_times_are_times() -> None:
    body = {
        "decision_id": "u-1", "at": 1794853651.25, "row": 18251, "number": 18300, "control": [2, 0], "snapshot": 18240,
        "request": {"context": {"age": 44.81, "country": "PT"}, "only": ["offer"]}, "outcome": {"click": 1.0},
        "probabilities": {"nothing": 0.5, "offer": 0.5},
        "limits": {"opt_out": {"pessimistic_cost": 0.01, "estimate": 0.004, "threshold": 0.02}},
        "description": ["'offer' was served.", "It was drawn.", "opt_out: expected at most 0.01; the limit is 0.02."],
    }  # fmt: skip
    told = render_explanation("u-1", body, PROBLEM)
    assert '<p class="name">&#39;offer&#39; was served.</p>\n<p class="name">It was drawn.</p>' in told
    assert '<time datetime="2026-11-16T18:27:31Z"' in told
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", told)[2:] == [
        ("context", "age 44.81, country PT"), ("available", "offer"), ("outcome", "click 1"), ("row", "18,251"),
    ]  # fmt: skip
    assert told.count("opt_out") == 1
    assert "estimated at 0.4 %, upper confidence bound 1 %; limit 2 %" in told
    assert "e+09" not in told


def test_what_is_not_there_is_said_in_a_sentence(desk: KnownDesk) -> None:
    client = logged_in(desk)
    for path in ("/e/nobody", "/e/notes/decisions/none"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert "Not found" in answer.text
    assert client.get("/e/nobody/data.json").json()["code"] == "unknown_experiment"


def test_a_store_that_is_away_is_a_page_of_its_own(desk: KnownDesk) -> None:
    client = logged_in(desk)
    desk.down = "the file is gone"
    for path in ("/", "/e/notes", "/e/notes/data.json"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "the safe action is served" in answer.text


def figures(desk: KnownDesk, **told: Any) -> Iterator[Any]:
    return iter(build_verdict({**desk.figures("notes"), **told}))


def test_the_verdict_in_words(desk: KnownDesk) -> None:
    level, line, answers = figures(desk)
    assert (level, line) == ("fine", "Within its limits, and too early to tell.")
    assert [one.level for one in answers] == ["fine", "fine", "wait"]
    level, line, _ = figures(desk, killed="killed by ada: why")
    assert (level, line) == ("off", "Stopped. Only “nothing” is served.")
    level, line, answers = figures(desk, snapshot_age_s=100.0)
    assert (level, line) == ("wait", "Within its limits, and not learning.")
    level, line, answers = figures(desk, lag_rows=701_854)
    assert (level, line) == ("wait", "Reading the log: 701,854 rows are not in these figures yet.")
    assert [one.level for one in answers] == ["wait", "wait", "wait"]
    level, line, _ = figures(desk, alerts=[{"name": "noise", "message": "more"}])
    assert (level, line) == ("bad", "Alert. Only “nothing” is served until somebody acknowledges it.")
    limits = desk.figures("notes")["limits"]
    broken = {**limits, "opt_out": {**limits["opt_out"], "observed_mean": 0.05, "low": 0.03, "high": 0.08}}
    level, line, answers = figures(desk, limits=broken)
    assert (level, line) == ("bad", "opt_out is over its limit.")
    assert next(figures(desk, limits=broken, lag_rows=1)) == "bad"  # what is past stays broken
    assert answers[0].message == "The observed opt_out is 5 % (3 % to 8 %); its limit is 2 %."
    over = {**limits, "opt_out": {**limits["opt_out"], "pessimistic_cost": 0.0201}}
    assert next(figures(desk, limits=over)) == "bad"
    reward = {**desk.figures("notes")["reward"], "gain": {"mean": 0.03, "low": 0.01, "high": 0.05}}
    level, line, answers = figures(desk, reward=reward)
    assert (level, line) == ("fine", "Within its limits, and worth it.")
    assert answers[2].message == "click: +3 points (+1 to +5 points) per decision, compared with “nothing”."
    assert build_verdict(desk.figures("empty")).line == "Ready. There are no decisions yet."
    assert next(figures(desk, mode="shadow")) == "off"


def test_a_safe_cost_that_is_being_learned_is_no_alarm() -> None:
    log = Log(dataclasses.replace(PROBLEM, limits={"opt_out": sw.Limit(0.02, window="20s", model="rates")}), 1.8e9)
    log.decision(1.8e9, "d0", "nothing", limits=feared(opt_out=1.0))
    desk = KnownDesk({"notes": log})
    level, line, answers = figures(desk)
    assert (level, line) == ("wait", "Learning the safe action’s cost.")
    assert "The cost of “nothing” (opt_out) was not declared" in answers[0].message
    page = logged_in(desk).get("/e/notes").text
    assert "A decision was over its limit" not in page
    assert "The cost of the safe action was not declared." in page


def test_shadow_tells_what_would_have_been_served(log: Log) -> None:
    told = Log(PROBLEM, 1.8e9)
    for i, (action, dearest) in enumerate([("offer", 0.0123), ("digest", 0.01), ("offer", 0.01), ("nothing", 0.0)]):
        choice = {"action": action, "probabilities": {action: 1.0}, "limits": feared(opt_out=dearest, complaint=0.0)}
        told.decision(1.8e9 + i, f"d{i}", "nothing", limits=feared(opt_out=0.0), kind="shadow", choice=choice)
        told.outcome(1.8e9 + i, f"d{i}", click=0.0)
    desk = KnownDesk({"notes": told}, mode="shadow")
    answers = build_verdict(desk.figures("notes")).answers
    assert answers[1].message == "“nothing” is served; the policy would serve “offer” in 50 % of decisions."
    parts = logged_in(desk).get("/e/notes/data.json").json()["parts"]
    assert re.findall(r'data-of="in shadow">([^<]*)<', parts["actions"]) == ["25 %", "25 %", "50 %", "0 %"]
    assert "in shadow</dt><dd>1.23 %</dd>" in parts["limit-0"]
    live = logged_in(KnownDesk({"notes": log})).get("/e/notes/data.json").json()["parts"]
    assert not any("in shadow" in live[name] for name in ("actions", "limit-0"))
