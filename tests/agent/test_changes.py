"""Changes of means: the action that changed is held back alone, a person is told, and it is known again by itself."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.problem.timing import DAY

START = 1.7e9
NAME = "change of opt_out"


def build(**others: Any) -> sw.Problem:
    limits = {"opt_out": sw.Limit(0.2, safe_bound=0.0, **{"drift": "jumps", **others})}
    actions = ["nothing", "offer", "sale"]
    return sw.Problem(action_names=actions, safe_name="nothing", reward=sw.Reward("click"), limits=limits)


class Stream:
    """Logs of one month after another, of both other actions."""

    def __init__(self, agent: sw.Agent) -> None:
        self.agent, self.rng, self.day = agent, np.random.default_rng(6), 0.0

    def learn(self, offer: float, sale: float, rows: int = 900, **more: Any) -> None:
        actions = np.where(np.arange(rows) % 2, "sale", "offer")
        rates = np.where(actions == "sale", sale, offer)
        at = START + (self.day + np.arange(rows) * 30.0 / rows) * DAY
        opted = self.rng.random(rows) < rates
        self.agent.learn_log_frame({"action": actions, "click": actions == "sale", "opt_out": opted, "at": at, **more})
        self.day += 30.0

    def read_shares(self, **context: Any) -> list[float]:
        now = START + self.day * DAY
        found = [self.agent.decide(context or None, propose=name, now=now) for name in ("offer", "sale")]
        return [one.probabilities[name] for one, name in zip(found, ("offer", "sale"), strict=True)]


@pytest.fixture
def stream() -> Stream:
    return Stream(sw.Agent(build(), seed=1))


def test_one_action_is_held_back_and_recovers(stream: Stream) -> None:
    stream.learn(0.05, 0.05)
    assert stream.read_shares() == [1.0, 1.0]
    assert stream.agent.health()[NAME].verdict == "fine"
    stream.learn(0.05, 0.5)
    health = stream.agent.health()
    finding = health[NAME]
    assert (finding.verdict, finding.check, finding.signal) == ("warning", "change", "opt_out")
    assert finding.details["action"] == "'sale'"
    assert abs(finding.details["since"] - (START + 30 * DAY)) <= 6 * DAY
    assert finding.details["mean"] == pytest.approx(0.5, abs=0.15)
    assert health.ok
    offer, sale = stream.read_shares()
    assert offer == 1.0
    assert sale < 0.9
    for _ in range(2):
        stream.learn(0.05, 0.05)
    assert stream.read_shares() == [1.0, 1.0]


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_a_changed_action_cost_does_not_stop_the_others(stream: Stream, by_hand: bool) -> None:
    agent, rng = stream.agent, np.random.default_rng(7)
    stream.learn(0.05, 0.05)
    now, count = START + 31 * DAY, 1500
    if by_hand:
        for row in range(count):
            decision = agent.decide(now=now + row, propose="sale")
            assert decision.reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED
            agent.learn(decision, click=1.0, opt_out=rng.random() < 0.5 * (decision.action == "sale"), now=now + row)
    else:
        users = {"user_id": np.arange(count), "wanted": ["sale"] * count}
        table = agent.decide_frame(users, run="night", now=now, propose="wanted")
        opted = rng.random(count) < 0.5 * (np.array(table["action"]) == "sale")
        agent.learn_outcomes({"decision_id": table["decision_id"], "click": np.ones(count), "opt_out": opted}, now=now)
    health = agent.health()
    assert health[NAME].verdict == "warning"
    assert health["limit of opt_out"].verdict == "fine"
    assert not agent.report().alerts
    stream.day = 32.0
    offer, sale = stream.read_shares()
    assert offer == 1.0
    assert sale < 0.9


def test_costs_that_no_change_explains_stop_everything() -> None:
    """After a change the test of the limit goes on with the decisions from then on."""
    stream = Stream(sw.Agent(build(), seed=1))
    stream.learn(0.05, 0.05)
    stream.learn(0.05, 0.5)
    agent, now = stream.agent, START + 61 * DAY
    for row in range(400):
        agent.learn(agent.decide(now=now + row), click=1.0, opt_out=1.0, now=now + row)
    assert "limit of opt_out" in agent.report().alerts


def test_a_person_may_want_everything_to_stop(stream: Stream) -> None:
    stream.agent = sw.Agent(build(on_jump="stop"), seed=1)
    stream.learn(0.05, 0.05)
    stream.learn(0.05, 0.5)
    assert not stream.agent.health().ok
    decision = stream.agent.decide(now=START + 60 * DAY)
    assert decision.action == "nothing"
    assert decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    assert decision.reason_details is not None
    assert decision.reason_details.details["found"] == "change"
    report = stream.agent.report()
    assert list(report.alerts) == [NAME]
    assert report.to_dict()["alerts"][NAME][1]["found"] == "change"
    assert NAME in str(report)
    stream.agent.acknowledge_alert(NAME, "Ana: a broken footer")
    assert not stream.agent.report().alerts
    assert stream.read_shares()[0] == 1.0
    mean = stream.agent.health()[NAME].details["mean"]
    stream.learn(0.05, 0.4, rows=200)
    finding = stream.agent.health()[NAME]
    assert (finding.verdict, finding.note) == ("acknowledged", "Ana: a broken footer")  # the same change still
    assert finding.details["mean"] != mean
    assert stream.agent.health().ok
    stream.learn(0.05, 0.05)
    stream.learn(0.6, 0.05)
    assert not stream.agent.health().ok  # another change is another alert
    assert stream.agent.health()[NAME].details["action"] == "'offer'"


def test_what_is_slower_than_declared_is_no_change() -> None:
    calm, fast = (Stream(sw.Agent(build(drift=drift), seed=1)) for drift in ("0.2/30d", "0.001/30d"))
    for one in (calm, fast):
        one.learn(0.05, 0.04)
        one.learn(0.05, 0.18)
    assert calm.agent.health()[NAME].verdict == "fine"
    assert fast.agent.health()[NAME].verdict == "warning"
    assert fast.agent.health()[NAME].details["declared"]


def test_a_segment_changes_alone() -> None:
    stream = Stream(sw.Agent(build(by="country"), seed=1))
    both = np.where(np.arange(900) % 4 < 2, "NZ", "AU")
    stream.learn(0.05, 0.05, country=both)
    rates = np.where(both == "AU", 0.7, 0.05)
    stream.learn(0.05, rates, country=both)  # type: ignore[arg-type]
    details = stream.agent.health()[NAME].details
    assert (details["action"], details["segment"]) == ("'sale'", "AU")
    assert stream.read_shares(country="NZ") == [1.0, 1.0]
    assert stream.read_shares(country="AU")[1] < 0.9


def test_relearning_forgets_one_action_before_a_time(stream: Stream) -> None:
    stream.learn(0.05, 0.05)
    stream.learn(0.05, 0.05)
    stream.agent.forget_costs("sale", before=START + 45 * DAY)
    part = stream.read_shares()
    assert part[0] == 1.0
    assert 0.2 < part[1] <= 1.0
    stream.agent.forget_costs("sale")
    assert stream.read_shares() == [1.0, pytest.approx(0.2)]
    for _ in range(2):
        stream.learn(0.05, 0.05)
    assert stream.read_shares() == [1.0, 1.0]


def test_what_cannot_be_relearned_is_refused(stream: Stream) -> None:
    with pytest.raises(sw.InvalidProblem):
        stream.agent.forget_costs("sail")
    with pytest.raises(sw.InvalidOutcome):
        stream.agent.forget_costs("sale", before="yesterday")
    with pytest.raises(sw.InvalidProblem) as error:
        sw.Agent(build(drift=None)).forget_costs("sale")
    assert error.value.code == ErrorCode.UNSUPPORTED
    with pytest.raises(sw.InvalidProblem) as error:
        build(drift=None, on_jump="stop")
    assert error.value.code == ErrorCode.UNUSED_SETTING
    with pytest.raises(sw.InvalidProblem):
        build(on_jump="shrug")


def test_an_action_that_became_cheaper_does_not_explain_what_another_one_cost() -> None:
    """The stop of a limit stays open, though a change of the limit was found after it."""
    problem = sw.Problem(
        action_names=["nothing", "letter", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.05, safe_bound=0.0, drift="jumps")},
    )  # fmt: skip
    agent, at, opted = sw.Agent(problem, seed=1), 1.7e9, np.random.default_rng(0).random(1500) < 0.3
    log = {"action": ["letter"] * 1500 + ["offer"] * 1500, "click": [0.0] * 3000}
    agent.learn_log_frame({**log, "opt_out": [*opted.astype(float), *[0.0] * 1500], "at": at + np.arange(3000.0)})
    letters = []
    while len(letters) < 120:
        decision = agent.decide(propose="letter", now=(at := at + 1.0) + 3000.0)
        letters += [decision] if decision.action == "letter" else []
        if decision.action == "nothing":
            agent.learn(decision, click=0.0, opt_out=0.0)
    agent.decide(propose="offer", now=at + 3001.0)  # later outcomes wait for its own
    for offer in [agent.decide(propose="offer", now=at + 3001.0) for _ in range(120)]:
        agent.learn(offer, click=0.0, opt_out=1.0)
    assert list(agent._learned.statistics.open_alerts) == ["limit of opt_out"]
    for letter in letters:
        agent.learn(letter, click=0.0, opt_out=0.0)
    assert agent._learned.statistics.warnings["change of opt_out"].details["action"] == "'letter'"
    assert list(agent._learned.statistics.open_alerts) == ["limit of opt_out"]
    assert agent.decide(propose="offer", now=at + 3002.0).probabilities["offer"] == 0.0
