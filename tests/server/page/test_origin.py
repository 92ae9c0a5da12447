"""The page behind TLS: a browser sees https, the desk speaks plain HTTP, and forms come from our own page alone."""

import re
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.server.page.known import PROBLEM, FakeKeys, KnownDesk
from tests.server.page.visitor import Answered, Visitor
from tests.server.rows import Log

from stagewise.problem.errors import ErrorCode
from stagewise.server.web.page.routes import build_page_routes
from stagewise.server.web.page.sessions import InvalidAddress, parse_origin

ADMIN, PUBLIC = "sw_ada_secret", "https://desk.example"
KEY = {"key": ADMIN}
Told = dict[str, str]


def browser(**more: str) -> Told:
    """Return what a browser sends with a form of the page at https://desk.example."""
    return {"host": "desk.example", "origin": PUBLIC, "sec-fetch-site": "same-origin", **more}


def without(told: Told, *names: str) -> Told:
    return {name: value for name, value in told.items() if name not in names}


@pytest.fixture
def desk() -> KnownDesk:
    return KnownDesk({"notes": Log(PROBLEM, 1.8e9)})


def visitor(desk: KnownDesk, public: str = "") -> Visitor:
    return Visitor(Starlette(routes=build_page_routes(desk, FakeKeys(), bytes(32), public=public)))


def killed(visiting: Visitor, headers: Told) -> Answered:
    """Pull the kill switch as the page's form does."""
    found = re.search(r'name="token" value="([0-9a-f]{64})"', visiting.get("/e/notes").text)
    assert found is not None
    return visiting.post("/e/notes/kill", data={"reason": "why", "token": found[1]}, headers=headers)


@pytest.mark.parametrize("public", ["", PUBLIC])
@pytest.mark.parametrize("host", ["desk.example", "10.0.0.7:8000"])  # balancers pass it on, or put their own there
def test_a_browser_behind_tls_comes_in_and_stops_an_experiment(desk: KnownDesk, public: str, host: str) -> None:
    visiting = visitor(desk, public)
    cookie = visiting.post("/login", data=KEY, headers=browser(host=host)).headers["set-cookie"]
    assert cookie.startswith("__Host-stagewise=")
    assert [word for word in ("HttpOnly", "SameSite=strict", "Secure", "Path=/") if word not in cookie] == []
    assert "Domain" not in cookie
    assert killed(visiting, browser(host=host)).status_code == 303
    assert desk.changes == [("kill", "notes", "ada", "why")]
    token = re.search(r'name="token" value="([0-9a-f]{64})"', visiting.get("/").text)
    assert token is not None
    assert visiting.post("/logout", data={"token": token[1]}, headers=browser(host=host)).status_code == 303
    assert visiting.cookies == {}


FOREIGN: list[tuple[str, Told]] = [
    *(("", browser(**{"sec-fetch-site": site})) for site in ("cross-site", "same-site", "unheard-of", "")),
    *((PUBLIC, browser(**{"sec-fetch-site": site})) for site in ("cross-site", "same-site", "unheard-of", "")),
    ("", without(browser(), "sec-fetch-site")),  # an old browser: nothing tells that https is ours
    ("", browser(**{"sec-fetch-site": "none"})),
    ("", {"origin": "https://elsewhere"}),
    ("", {"origin": "null"}),
    *((PUBLIC, browser(origin=origin)) for origin in ("http://desk.example", "https://desk.example:8443", "null", "")),
    (PUBLIC, {"host": "desk.example", "origin": "http://desk.example"}),
    (PUBLIC, {"host": "elsewhere", "origin": "http://elsewhere"}),  # a name that was led here
    (PUBLIC, {"origin": "https://desk.example.elsewhere"}),
]


@pytest.mark.parametrize(("public", "headers"), FOREIGN)
def test_a_form_from_elsewhere_opens_no_door_and_changes_nothing(desk: KnownDesk, public: str, headers: Told) -> None:
    visiting = visitor(desk, public)
    refused = visiting.post("/login", data=KEY, headers=headers)
    assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
    assert "--public-url" in refused.text
    assert visiting.post("/login", data=KEY, headers=browser()).status_code == 303
    assert killed(visiting, headers).status_code == 403
    assert desk.changes == []


def test_headers_that_anybody_can_send_are_not_believed(desk: KnownDesk) -> None:
    told = {
        "x-forwarded-proto": "https",
        "x-forwarded-host": "desk.example",
        "forwarded": "proto=https;host=desk.example",
    }
    visiting = visitor(desk)
    assert visiting.post("/login", data=KEY, headers={**told, "origin": PUBLIC}).status_code == 403
    assert "Secure" not in visiting.post("/login", data=KEY, headers=told).headers["set-cookie"]


def test_an_old_browser_comes_in_where_the_address_was_told(desk: KnownDesk) -> None:
    visiting = visitor(desk, PUBLIC)
    assert visiting.post("/login", data=KEY, headers=without(browser(), "sec-fetch-site")).status_code == 303
    assert killed(visiting, without(browser(), "sec-fetch-site")).status_code == 303


def test_a_plain_cookie_is_nobodys_where_the_page_is_behind_tls(desk: KnownDesk) -> None:
    plain = visitor(desk)
    assert plain.post("/login", data=KEY).status_code == 303
    behind = visitor(desk, PUBLIC)
    behind.cookies = dict(plain.cookies)  # as another service of the host could have set it
    assert list(behind.cookies) == ["stagewise"]
    assert behind.get("/").status_code == 303
    assert plain.get("/").status_code == 200


def test_the_page_shows_the_address_that_browsers_see(desk: KnownDesk) -> None:
    visiting = visitor(desk, PUBLIC)
    visiting.post("/login", data=KEY, headers=browser())
    assert f"{PUBLIC}/v1/notes/decisions" in visiting.get("/e/notes").text


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://desk.example", PUBLIC),
        ("HTTPS://Desk.Example:443/", PUBLIC),
        ("https://desk.example:8443", "https://desk.example:8443"),
        ("http://desk.example:80", "http://desk.example"),
        ("https://[2001:DB8::1]:443", "https://[2001:db8::1]"),
    ],
)
def test_an_address_is_written_as_browsers_write_it(url: str, origin: str) -> None:
    assert parse_origin(url) == origin


BAD: list[Any] = [
    "",
    "desk.example",
    "ftp://desk.example",
    "https://",
    "https://désk.example",
    "https://a b",
    "https://a:x",
]
MORE: list[Any] = [
    "https://desk.example/desk",
    "https://desk.example?a",
    "https://desk.example/#a",
    "https://a:secret@desk",
]


@pytest.mark.parametrize("url", [*BAD, *MORE, "https://a\n", "https://[::1"])
def test_an_address_that_no_page_can_have_is_refused(url: str) -> None:
    with pytest.raises(InvalidAddress) as refused:
        parse_origin(url)
    assert refused.value.code is ErrorCode.INVALID_ADDRESS
    assert "secret" not in str(refused.value)
