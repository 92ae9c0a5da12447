"""Changes that no group shows alone: found in all groups of an action together, and only that action is held back."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.chance import allowed

import stagewise as sw
from stagewise.agent.agent_statistics import DriftTrack
from stagewise.agent.learned_state import update_track
from stagewise.models.drifting_rates import JUMPING_RATES, JumpingRatesDiagnostics
from stagewise.problem.timing import DAY

GROUPS, START, NAME = 20, 1.7e9, "change of opt_out"
LEVEL = 0.05


def build(**others: Any) -> sw.Problem:
    limits = {"opt_out": sw.Limit(0.3, safe_bound=0.0, **{"drift": "jumps", "by": "group", **others})}
    actions = ["nothing", "offer", "sale"]
    return sw.Problem(action_names=actions, safe_name="nothing", reward=sw.Reward("click"), limits=limits)


class Stream:
    """Logs of one month after another, of both other actions in all groups."""

    def __init__(self, agent: sw.Agent) -> None:
        self.agent, self.rng, self.day = agent, np.random.default_rng(6), 0.0

    def learn(self, offer: float, sale: float, rows: int = 1600) -> None:
        actions = np.where(np.arange(rows) % 2, "sale", "offer")
        groups = self.rng.integers(GROUPS, size=rows)
        at = START + (self.day + np.arange(rows) * 30.0 / rows) * DAY
        opted = self.rng.random(rows) < np.where(actions == "sale", sale, offer)
        log = {"action": actions, "click": actions == "sale", "opt_out": opted, "at": at}
        self.agent.learn_log_frame({**log, "group": [f"g{group}" for group in groups]})
        self.day += 30.0

    def find_changes(self) -> Any:
        return self.agent._learned.statistics.warnings.get(NAME)

    def read_bounds(self) -> list[float]:
        """Return the bounds of the offer and the sale in the first group."""
        policy: Any = self.agent.policy
        memory = self.agent.state.memory
        context = policy.problem.encode_context({"group": "g0"}).at(START + self.day * DAY)
        result = policy.rounds.play(memory, policy.rows_for(context), context.get_eligible(3), (0, 0, 0))
        bounds = result.workspace.bounds
        return [float(bounds[1, 0, action] + bounds[1, 1, action]) for action in (1, 2)]


def learn_until_found(stream: Stream) -> float:
    """Learn four months, then others in which the sale is worse in every group; return the day of the change."""
    for _ in range(4):
        stream.learn(0.05, 0.05)
    assert stream.find_changes() is None
    changed = stream.day
    while stream.find_changes() is None and stream.day < changed + 300.0:
        stream.learn(0.05, 0.14)
    return changed


def test_a_change_that_no_group_shows_is_found_in_all_and_holds_back_one_action() -> None:
    stream = Stream(sw.Agent(build(), seed=1))
    changed = learn_until_found(stream)
    found = stream.find_changes().details
    assert (found["action"], found["segment"], found["limit"]) == ("'sale'", None, "opt_out")
    assert abs(found["since"] - (START + changed * DAY)) <= 31 * DAY
    offer, sale = stream.read_bounds()
    assert offer < 0.3 < sale == 1.0
    assert stream.agent.health().ok
    stream.learn(0.05, 0.14, 8000)
    assert stream.find_changes().details["since"] == found["since"]  # what is older is compared no more
    assert stream.find_changes().details["mean"] == pytest.approx(0.14, abs=0.03)
    offer, sale = stream.read_bounds()
    assert offer < sale < 0.6


def test_a_change_is_saved_with_the_agent_and_may_stop_it(tmp_path: Any) -> None:
    stream = Stream(sw.Agent(build(on_jump="stop"), seed=1))
    for offer, sale in ((0.05, 0.05), (0.05, 0.05), (0.05, 0.3)):
        stream.learn(offer, sale)
    stream.agent.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    for agent in (stream.agent, loaded):
        decision = agent.decide({"group": "g0"}, now=START + stream.day * DAY)
        assert decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    loaded_stream = Stream(loaded)
    loaded_stream.day = stream.day
    loaded_stream.learn(0.05, 0.3)
    assert loaded.health()[NAME].verdict == "contradicted"


def test_what_a_person_relearns_is_not_found_again() -> None:
    stream = Stream(sw.Agent(build(), seed=1))
    for _ in range(3):
        stream.learn(0.05, 0.05)
    stream.agent.forget_costs("sale")
    for _ in range(3):
        stream.learn(0.05, 0.14)
    assert stream.find_changes() is None


class FewFalseAlarms(JumpingRatesDiagnostics):
    """The diagnostics at a level that runs can show; it counts what would be forgotten."""

    found = 0

    def get_false_alarms(self, block: Any, settings: Any) -> float:
        return LEVEL

    def forget(self, *arguments: Any, **more: Any) -> None:
        self.found += 1


def count_alarms(seed: int, outcomes: int, late: float) -> int:
    """Return the alarms of two actions in twenty groups whose mix moves; from the middle on, means are `late` times."""
    rng, answers, track = np.random.default_rng(seed), FewFalseAlarms(), DriftTrack()
    rates, size = np.repeat(rng.uniform(0.005, 0.05, GROUPS), 2), 2 * GROUPS
    pulls, totals, learned = np.zeros(size), np.zeros(size), 0
    block = SimpleNamespace(column=0, size=2, first=1)
    policy = SimpleNamespace(thresholds=SimpleNamespace(names=("opt_out",)), moduli=("opt_out",), settings=None)
    while learned < outcomes:
        count = track.next_check - learned
        weights = 1.0 + np.arange(size) * learned / outcomes  # later others come
        came = rng.multinomial(count, weights / weights.sum())
        pulls = pulls + came
        totals = totals + rng.binomial(came, rates * (late if learned >= outcomes / 2 else 1.0))
        learned += count
        now = {"pulls 0": pulls, "totals 0": totals, "forgotten 0": np.zeros(size), "time 0": np.array(float(learned))}
        bound: Any = (SimpleNamespace(diagnostics=answers), block)
        update_track(policy, pulls, track, 1, 0, bound, {**now, "outcomes 0": np.array(float(learned))})
    return answers.found


@pytest.mark.parametrize("runs", [pytest.param(20, id="few"), pytest.param(2000, id="many", marks=pytest.mark.slow)])
def test_means_that_stay_are_seldom_said_to_jump_and_others_are(runs: int) -> None:
    """The mix of the groups changes, from half of the outcomes on nearly twofold: that is no change of any mean."""
    assert JUMPING_RATES.diagnostics.kept_marks > 1
    assert sum(count_alarms(seed, 20_000, 1.0) > 0 for seed in range(runs)) <= allowed(runs, LEVEL)
    assert sum(count_alarms(seed, 20_000, 2.0) > 0 for seed in range(5)) == 5
