"""The page in a real browser: Chromium, on the loopback, at a phone's width and a wide one, by day and by night."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.browser import launched
from tests.server.page.known import PROBLEM, FakeKeys, KnownDesk, campaign
from tests.server.page.serving import page_of, tab_of
from tests.server.rows import Log, feared

import stagewise as sw

HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>"
OVERFLOW = "() => document.documentElement.scrollWidth - window.innerWidth"
DRAWN = """() => [...document.querySelectorAll('.plot canvas')].map((canvas) => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let inked = 0;
  for (let i = 3; i < data.length; i += 4) inked += data[i] > 0;
  return inked;
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


@pytest.fixture(scope="module")
def log() -> Log:
    return campaign(800)


def opened(tab: Any, address: str, path: str = "/e/notes") -> None:
    tab.goto(address + path)
    tab.wait_for_selector("html[data-refreshed]")


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1600, "dark")])
def test_it_fits_and_draws_without_a_word_in_the_console(browser: Any, log: Log, width: int, scheme: str) -> None:
    alerts = [{"name": "safe opt_out", "message": "declared at most 0, and 3 were seen"}]
    desk = KnownDesk({"notes": log, "x" * 100: Log(PROBLEM, 1.8e9)}, snapshot_age_s=100.0, alerts=alerts)
    with page_of(desk, FakeKeys()) as address, tab_of(browser, address, width, scheme) as tab:
        for path in ("/", "/e/notes", "/e/" + "x" * 100):
            opened(tab, address, path)
            assert tab.evaluate(OVERFLOW) <= 0
        opened(tab, address)
        ground = tab.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 384) == (scheme == "dark")
        tab.click("text=Mode…")
        assert tab.is_visible("#do-mode textarea")
        assert tab.evaluate(OVERFLOW) <= 0
        assert tab.troubles == []
        inked = tab.evaluate(DRAWN)
        assert len(inked) == 5
        assert min(inked) > 500


def test_it_shows_the_figures_of_a_known_log_and_follows_it(browser: Any) -> None:
    log = Log(PROBLEM, 1.8e9)
    limits = {
        "opt_out": {"estimate": None, "pessimistic_cost": 0.0125, "threshold": 0.02},
        "complaint": {"estimate": None, "pessimistic_cost": 0.004, "threshold": 0.005},
    }
    for i in range(4):
        action = "offer" if i else "nothing"
        log.decision(1.8e9 + i, f"d{i}", action, limits=limits, probabilities={"nothing": 0.25, "offer": 0.75})
        log.outcome(1.8e9 + i + 0.5, f"d{i}", click=float(i == 2), opt_out=float(i == 3), complaint=0.0)
    desk = KnownDesk({"notes": log})
    with page_of(desk, FakeKeys()) as address, tab_of(browser, address) as tab:
        opened(tab, address)
        limit = tab.inner_text("[data-part=limit-0]")
        assert "25 %" in limit  # one opt-out of four
        assert "1.25 %" in limit
        assert "at most 2 %" in limit
        assert "0 %" in tab.inner_text("[data-part=limit-1]")
        reward = tab.inner_text("[data-part=reward]")
        assert "25 %" in reward
        assert "of 4" in reward
        served = tab.eval_on_selector_all("[data-part=actions] tbody tr", "(rows) => rows.map((row) => row.innerText)")
        assert [re.findall(r"[\d.]+ %", row)[1] for row in served] == ["25 %", "0 %", "75 %", "0 %"]
        assert tab.inner_text("[data-part=control]").count("\n4\n") == 1
        assert "opt_out is over its limit" not in tab.inner_text("h1")  # one of four proves nothing
        log.decision(1.8e9 + 5, "d4", "offer", limits=limits)
        tab.wait_for_selector("[data-part=control] >> text=/^5$/")
        assert tab.troubles == []


def test_it_does_not_look_while_nobody_can_see_it(browser: Any, log: Log) -> None:
    with page_of(KnownDesk({"notes": log}), FakeKeys()) as address, tab_of(browser, address) as tab:
        opened(tab, address)
        hide = "(on) => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => on });"
        hide += " document.dispatchEvent(new Event('visibilitychange')); }"
        tab.evaluate(hide, True)
        tab.wait_for_timeout(400)
        asked: list[str] = []
        tab.on("request", lambda one: asked.append(one.url))
        tab.wait_for_timeout(700)
        assert asked == []
        with tab.expect_request("**/data.json"):
            tab.evaluate(hide, False)


def test_the_door(browser: Any, log: Log) -> None:
    desk = KnownDesk({"notes": log})
    with page_of(desk, FakeKeys()) as address, tab_of(browser, address, key=None) as tab:
        tab.goto(f"{address}/e/notes")
        assert tab.url == f"{address}/login?next=/e/notes"
        tab.keyboard.type("sw_ada_guess")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("[role=alert]")
        assert "The key is unknown or revoked." in tab.inner_text("[role=alert]")
        tab.keyboard.type("sw_eve_secret")
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"{address}/e/notes")
        assert tab.query_selector("[data-open=do-kill]") is None
        assert tab.evaluate("() => document.cookie") == ""
        tab.click("text=Log out")
        tab.wait_for_url(f"{address}/login")
        refused = [one for one in tab.troubles if "403" not in one]
        assert refused == []


def test_stopping_takes_a_keyboard_and_a_reason(browser: Any, log: Log) -> None:
    desk = KnownDesk({"notes": log})
    with page_of(desk, FakeKeys()) as address, tab_of(browser, address) as tab:
        opened(tab, address)
        reached = []
        for _ in range(40):
            tab.keyboard.press("Tab")
            told = "() => { const one = document.activeElement, style = getComputedStyle(one);"
            told += " return [one.innerText.trim(), style.outlineStyle, parseFloat(style.outlineWidth)]; }"
            text, style, thick = tab.evaluate(told)
            reached.append(text)
            assert style != "none", text
            assert thick >= 2, text
            if text.endswith("Stop"):
                break
        assert reached[-1].endswith("Stop")
        tab.keyboard.press("Enter")
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")  # without a reason the browser does not send it
        assert desk.changes == []
        tab.keyboard.press("Escape")
        assert not tab.is_visible("#do-kill")
        tab.keyboard.press("Enter")  # the focus is back on the button
        tab.keyboard.type("too many complaints")
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("h1 >> text=Stopped")
        assert desk.changes == [("kill", "notes", "ada", "too many complaints")]
        assert "Killed by ada: too many complaints" in tab.inner_text("[data-part=verdict]")
        assert tab.troubles == []


def test_names_that_scripts_know_are_names(browser: Any) -> None:
    """An action that nobody was served in a while is not a function of every object."""
    names = ["nothing", "constructor", "__proto__", "toString"]
    problem = sw.Problem(
        action_names=names,
        safe_name="nothing",
        reward=sw.Reward("valueOf"),
        limits={"constructor": sw.Limit(0.02, safe_bound=0.0, model="rates")},
    )
    log = Log(problem, 1.8e9)
    for i in range(40):
        log.decision(
            1.8e9 + i,
            f"d{i}",
            names[2 * (i % 2)],
            limits={"constructor": {"estimate": None, "pessimistic_cost": 0.01, "threshold": 0.02}},
        )
        log.outcome(1.8e9 + i, f"d{i}", valueOf=1.0, constructor=0.0)
    with page_of(KnownDesk({"notes": log}, problem), FakeKeys()) as address, tab_of(browser, address) as tab:
        opened(tab, address)
        legend = tab.inner_text("[data-chart=actions] .legend")
        assert re.findall(r"(\S+)\s+([\d.]+ %)", legend) == [
            ("nothing", "33.3 %"), ("constructor", "0 %"), ("__proto__", "66.7 %"), ("toString", "0 %"),
        ]  # fmt: skip
        assert tab.troubles == []


def test_a_desk_that_is_away_is_said_and_comes_back(browser: Any, log: Log) -> None:
    desk = KnownDesk({"notes": log})
    with page_of(desk, FakeKeys()) as address, tab_of(browser, address) as tab:
        opened(tab, address)
        desk.down = "the disk is full"
        tab.wait_for_selector("#unavailable:not([hidden])")
        assert "the disk is full" in tab.inner_text("#unavailable")
        assert "These figures are from" in tab.inner_text("#unavailable")
        desk.down = None
        tab.wait_for_selector("#unavailable", state="hidden")
        assert [one for one in tab.troubles if "503" not in one] == []


def test_shadow_begins_while_somebody_looks(browser: Any) -> None:
    log = campaign(200)
    desk, last = KnownDesk({"notes": log}), log.events[-1].at / 1e6
    with page_of(desk, FakeKeys()) as address, tab_of(browser, address, 390) as tab:
        opened(tab, address)
        assert "in shadow" not in tab.inner_text("main")
        desk.told["mode"] = "shadow"
        for i in range(40):
            choice = {"action": "offer", "probabilities": {"offer": 1.0}, "limits": feared(opt_out=0.01 + i * 1e-4)}
            log.decision(last + i, f"s{i}", "nothing", limits=feared(opt_out=0.0), kind="shadow", choice=choice)
        tab.wait_for_selector("[data-chart=limit][data-index='0'] .legend :text('in shadow')")
        assert "1.39 %" in tab.inner_text("[data-part=limit-0]")
        assert tab.locator("[data-chart=limit][data-index='0'] canvas").count() == 1
        assert tab.evaluate(OVERFLOW) <= 0
        assert min(tab.evaluate(DRAWN)) > 500
        assert tab.troubles == []
