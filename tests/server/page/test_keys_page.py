"""Keys on the page: an admin lists, makes and revokes them, by the page's own forms; nobody else sees them."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.browser import faint, launched, sticks_out
from tests.server.page.known import KnownDesk
from tests.server.page.serving import page_of, tab_of
from tests.server.page.visitor import Visitor
from tests.server.web.real import SwitchStore

from stagewise.problem.errors import ErrorCode
from stagewise.server.access_keys import AccessKeys
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.web.page.routes import build_page_routes

SECRET = r"sw_[A-Za-z0-9-]+_[0-9a-f]{64}"
SKIP = ["A Skip to the verdict"]  # seen by those who come to it with the keyboard
HOSTILE = "<script>alert(1)</script>\"'&"


class Ring:
    """A page with real keys: one of each role."""

    def __init__(self, folder: Path) -> None:
        self.store = SwitchStore(folder / "keys.db")
        self.keys = AccessKeys(self.store)
        self.admin, self.writer, self.reader = self.keys.create_initial_keys()
        self.app = Starlette(routes=build_page_routes(KnownDesk({}), self.keys, bytes(32)))

    def visitor(self, key: str) -> Visitor:
        came = Visitor(self.app)
        assert came.post("/login", data={"key": key}).status_code == 303
        return came

    def row(self, name: str) -> Any:
        return next(row for row in self.keys.list_keys() if row.name == name)

    def rows(self) -> list[Any]:
        return self.keys.list_keys()


def token_of(visitor: Visitor) -> str:
    found = re.search(r'name="token" value="([0-9a-f]{64})"', visitor.get("/").text)
    assert found is not None
    return found[1]


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Ring]:
    ring = Ring(tmp_path)
    yield ring
    ring.store.close()


def test_a_key_is_shown_once_and_lets_in(ring: Ring) -> None:
    came = ring.visitor(ring.admin)
    form = {"token": token_of(came), "name": "wall", "role": "reader", "note": "  the screen\n in the hall "}
    made = came.post("/keys", data=form)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    (key,) = re.findall(SECRET, made.text)
    assert ring.visitor(key).get("/").status_code == 200
    assert (ring.row("wall").role, ring.row("wall").note) == ("reader", "the screen in the hall")
    again = came.post("/keys", data=form)  # as a browser does that loads the page again
    assert again.status_code == 409
    for page in (again.text, came.get("/keys").text, came.get("/").text):
        assert re.findall(SECRET, page) == []
        assert ring.row("wall").digest.hex() not in page


def test_a_key_that_is_revoked_is_refused_and_its_session_over(ring: Ring) -> None:
    came, reader = ring.visitor(ring.admin), ring.visitor(ring.reader)
    answer = came.post("/keys/revoke", data={"token": token_of(came), "name": "viewer"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/keys")
    assert reader.get("/").headers["location"] == "/login?next=/"
    assert Visitor(ring.app).post("/login", data={"key": ring.reader}).status_code == 403
    page = came.get("/keys").text
    assert "revoked" in page
    assert 'data-name="viewer"' not in page
    assert 'data-name="app"' in page


def test_the_only_admin_key_stays(ring: Ring) -> None:
    came = ring.visitor(ring.admin)
    refused = came.post("/keys/revoke", data={"token": token_of(came), "name": "admin"})
    assert (refused.status_code, "the only admin key" in unescape(refused.text)) == (409, True)
    assert came.get("/keys").status_code == 200


MAKE, REVOKE = {"name": "bob", "role": "admin"}, {"name": "app"}


@pytest.mark.parametrize(("path", "form"), [("/keys", MAKE), ("/keys/revoke", REVOKE)])
def test_whoever_may_not_changes_nothing(ring: Ring, path: str, form: dict[str, str]) -> None:
    admin, other, before = ring.visitor(ring.admin), ring.visitor(ring.admin), ring.rows()
    assert Visitor(ring.app).post(path, data=form).headers["location"] == "/login"
    for token in ("", "0" * 64, token_of(other), "é"):
        assert admin.post(path, data={**form, "token": token}).status_code == 403
    good = {**form, "token": token_of(admin)}
    for headers in ({"origin": "https://elsewhere"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}):
        assert admin.post(path, data=good, headers=headers).status_code == 403
    for key in (ring.reader, ring.writer):
        came = ring.visitor(key)
        answer = came.post(path, data={**form, "token": token_of(came)})
        assert (answer.status_code, "admin" in answer.text) == (403, True)
    assert ring.rows() == before
    assert admin.get(f"{path}?{'&'.join(f'{k}={v}' for k, v in good.items())}").status_code in (200, 405)
    assert ring.rows() == before


def test_keys_are_shown_to_admins_alone(ring: Ring) -> None:
    assert Visitor(ring.app).get("/keys").headers["location"] == "/login?next=/keys"
    for key in (ring.reader, ring.writer):
        answer = ring.visitor(key).get("/keys")
        assert (answer.status_code, "created at the first start" in answer.text) == (403, False)
        assert 'href="/keys"' not in ring.visitor(key).get("/").text
    page = ring.visitor(ring.admin).get("/keys").text
    assert page.count("created at the first start") == 3
    assert 'href="/keys"' in ring.visitor(ring.admin).get("/").text


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"name": ""}, 422), ({"name": HOSTILE}, 422), ({"name": "a" * 41}, 422), ({"role": ""}, 422),
        ({"role": HOSTILE}, 422), ({"note": "x" * 201}, 422), ({"note": "a\0b"}, 422), ({"name": "app"}, 409),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_said_and_nothing_changed(ring: Ring, change: dict[str, str], status: int) -> None:
    came, before = ring.visitor(ring.admin), ring.rows()
    answer = came.post("/keys", data={**MAKE, "token": token_of(came), **change})
    assert (answer.status_code, 'href="/keys"' in answer.text) == (status, True)
    assert "<script>alert" not in answer.text
    assert ring.rows() == before
    assert came.post("/keys/revoke", data={"token": token_of(came), "name": HOSTILE}).status_code == 404
    assert ring.rows() == before


def test_notes_with_markup_are_text_and_a_store_that_is_away_is_said(
    ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    came = ring.visitor(ring.admin)
    token = token_of(came)
    assert came.post("/keys", data={**MAKE, "note": HOSTILE, "token": token}).status_code == 201
    assert "<script>alert" not in came.get("/keys").text
    before = ring.rows()

    def away(*_: object) -> None:
        raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "the store is away")

    monkeypatch.setattr(ring.store, "add_key", away)
    answer = came.post("/keys", data={"name": "eve", "role": "reader", "token": token})
    assert (answer.status_code, re.findall(SECRET, answer.text)) == (503, [])
    assert ring.rows() == before


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_key_is_made_and_revoked_in_a_browser(browser: Any, ring: Ring, width: int, scheme: str) -> None:
    ring.keys.add("a" * 40, "reader", "n" * 200)
    with page_of(KnownDesk({}), ring.keys) as address, tab_of(browser, address, width, scheme, ring.admin) as tab:
        tab.click("a:text('Keys')")
        tab.fill("#name", "wall")
        tab.check("input[value=reader]")
        tab.fill("#note", "the screen in the hall")
        tab.click("form.create button")
        assert re.fullmatch(SECRET, tab.inner_text(".secret"))
        assert (sticks_out(tab), faint(tab)) == (SKIP, [])
        tab.click("text=I have stored it")
        assert tab.query_selector(".secret") is None
        tab.click("[data-open=do-revoke][data-name=wall]")
        assert tab.inner_text("dialog [data-fill=name]") == "wall"
        assert sticks_out(tab) == SKIP
        tab.click("dialog button.danger")
        tab.wait_for_selector("[data-name=wall]", state="detached")
        assert ring.row("wall").revoked is not None
        assert (sticks_out(tab), faint(tab)) == (SKIP, [])
        assert tab.troubles == []
