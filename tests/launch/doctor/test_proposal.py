"""A problem is proposed: it loads, says why, keeps its rows apart, and what it promises holds."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.launch.doctor.jobs import RANGES, clean

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.findings import FindingCode

DELTA = 0.1
NAMES = ["nothing", "offer", "digest"]


@dataclass(frozen=True)
class World:
    """Users of some countries, whose opt-outs differ by action and country."""

    countries: dict[str, float]
    opt_outs: Any  # by action and country
    clicks: Any
    limit: float

    def log(self, rows, chance):
        sent = chance.integers(0, 3, rows)
        where = chance.choice(len(self.countries), rows, p=list(self.countries.values()))
        return {
            "action": np.array(NAMES, dtype=object)[sent],
            "age": chance.uniform(18.0, 90.0, rows).round(1),
            "country": np.array(list(self.countries), dtype=object)[where],
            "click": (chance.random(rows) < self.clicks[sent]) * 1,
            "opt_out": (chance.random(rows) < self.opt_outs[sent, where]) * 1,
        }


TWO = World({"NZ": 0.5, "AU": 0.5}, np.array([[0.06, 0.06], [0.08, 0.3], [0.12, 0.12]]), np.array([0.1, 0.5, 0.3]), 0.2)
FIVEFOLD = np.array([0.01, 0.02, 0.04])  # what "nothing" costs: five times as much in one country, twice in another
THREE = World({"de": 0.6, "nl": 0.3, "fr": 0.1}, np.outer([1.0, 2.0, 2.0], FIVEFOLD), np.array([0.05, 0.15, 0.2]), 0.06)


def world_log(rows, chance):
    return TWO.log(rows, chance)


def one_run(world, run, rows, users):
    """Propose from a log, learn from its rest, decide; say whether the limit was truly broken, and if it dared."""
    chance = np.random.default_rng([31, run])
    found = sw.check_log(world.log(rows, chance), limits={"opt_out": world.limit}, safe="nothing", delta=DELTA)
    agent = sw.Agent(found.problem, seed=run)
    agent.learn_log_frame(found.holdout.frame())
    broken, dared, names = False, False, list(world.countries)
    for _ in range(users):
        where = int(chance.choice(len(names), p=list(world.countries.values())))
        user: dict[str, Any] = {"age": float(chance.uniform(18.0, 90.0))}
        user |= {"country": names[where]} if found.problem.divisions else {}
        decision = agent.decide(user)
        shares = np.array([decision.probabilities[name] for name in NAMES])
        broken |= bool(shares @ world.opt_outs[:, where] > world.limit + 1e-9)
        dared |= decision.action != "nothing"
        place = NAMES.index(decision.action)
        luck = chance.random(2) < [world.clicks[place], world.opt_outs[place, where]]
        agent.learn(decision, click=bool(luck[0]), opt_out=bool(luck[1]))
    return broken, dared, found.problem.limits["opt_out"].by is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("world", "runs", "rows", "users"),
    [
        pytest.param(TWO, 4, 3_000, 25, id="few"),
        pytest.param(THREE, 4, 6_000, 25, id="few-three"),
        pytest.param(TWO, 300, 3_000, 300, id="two-countries", marks=[pytest.mark.slow, pytest.mark.compiled]),
        pytest.param(THREE, 300, 3_000, 300, id="three-3000", marks=[pytest.mark.slow, pytest.mark.compiled]),
        pytest.param(THREE, 300, 6_000, 300, id="three-6000", marks=[pytest.mark.slow, pytest.mark.compiled]),
    ],
)
def test_what_is_proposed_keeps_the_guarantee(world, runs, rows, users):
    """The offer keeps the limit on average and breaks it in one country, whether or not the rows can show it."""
    told = np.array([one_run(world, run, rows, users) for run in range(runs)]).sum(axis=0)
    broken, dared, undivided = told
    print(
        f"{broken} of {runs} proposed problems break a limit, {allowed(runs, DELTA)} may; {dared} dare something; "
        f"{undivided} do not divide users"
    )
    assert broken <= allowed(runs, DELTA)
    assert undivided == 0
    assert dared > 0.9 * runs


def test_the_file_says_why_and_is_the_problem(tmp_path):
    found = sw.check_log(clean(5, 6_000), limits={"opt_out": 0.02, "complaint": None})
    path = tmp_path / "problem.toml"
    path.write_text(found.to_toml(), encoding="utf-8")
    loaded = sw.Problem.load(path)
    assert loaded.to_dict() == found.problem.to_dict()
    for line in found.to_toml().splitlines():
        if re.match(r"(at_most|high|delta|\w+ = \[\d)", line):
            assert "  # " in line, line
    assert loaded.delta == pytest.approx(0.04)
    for name, (low, high) in loaded.ranges:
        assert low <= RANGES[name][0] + 0.2
        assert high >= RANGES[name][1] - 0.2


def test_rows_that_were_looked_at_are_not_left_to_learn_from():
    frame = clean(5, 4_000)
    found = sw.check_log(frame, limits=["opt_out"], reward="click", proposal_fraction=0.3)
    chosen = found.log.take(found.proposal.split.selection)
    assert chosen.rows == 1_200
    assert found.holdout.rows == 2_800
    assert chosen.at.max() < found.holdout.at.min()
    del frame["at"]
    found = sw.check_log(frame, limits=["opt_out"], reward="click")
    chosen = found.log.take(found.proposal.split.selection)
    assert chosen.rows + found.holdout.rows == found.log.rows == 4_000
    assert abs(chosen.rows - 2_000) < 200
    both = np.concatenate([chosen.arrays["distance"], found.holdout.arrays["distance"]])
    assert sorted(both) == sorted(frame["distance"])
    assert isinstance(found.holdout, Log)


def test_without_a_split_the_choice_is_paid_for():
    frame = clean(5, 4_000)
    frame["browser"] = np.array(["a", "b"], dtype=object)[np.arange(4_000) % 2]
    apart, together = (sw.check_log(frame, limits=["opt_out"], proposal_fraction=share) for share in (0.5, None))
    assert together.holdout.rows == together.log.rows == 4_000
    assert together.problem.delta == pytest.approx(apart.problem.delta / 4)  # a rate, two columns of text, or linear


def test_a_leak_is_left_out_and_a_segment_is_kept():
    chance = np.random.default_rng(1)
    frame = world_log(8_000, chance)
    frame["pages_after"] = frame["click"] * 3 + chance.random(8_000)
    found = sw.check_log(frame, limits={"opt_out": 0.2})
    assert "pages_after" not in found.problem.context
    assert "ignored.pages_after" in found.proposal.reasons
    assert found.problem.limits["opt_out"].by == "country"


def plain_log(rows, chance, rate=0.1, **texts):
    sent = chance.integers(0, 2, rows)
    return {
        "action": np.array(["today", "offer"], dtype=object)[sent],
        "click": (chance.random(rows) < 0.1) * 1,
        "opt_out": (chance.random(rows) < rate) * 1,
        **{
            name: np.array(values, dtype=object)[chance.integers(0, len(values), rows)]
            for name, values in texts.items()
        },
    }


@pytest.mark.long
def test_users_are_divided_unless_rates_are_shown_to_be_alike():
    chance = np.random.default_rng(3)
    few = sw.check_log(plain_log(2_000, chance, country=["NZ", "AU"]), limits={"opt_out": 0.12})
    assert few.problem.limits["opt_out"].by == "country"
    many = sw.check_log(plain_log(160_000, chance, 0.6, country=["NZ", "AU"]), limits={"opt_out": 0.5})
    assert many.problem.limits["opt_out"].by is None
    free = sw.check_log(plain_log(4_000, chance, country=["NZ", "AU"]), limits={"opt_out": 0.3})
    assert free.problem.limits["opt_out"].by is None


def test_what_a_limit_holds_on_average_over_is_said():
    chance = np.random.default_rng(3)
    log = plain_log(
        2_000, chance, country=["NZ", "AU"], device=["phone", "desktop", None], city=[f"c{i}" for i in range(50)]
    )
    found = sw.check_log(log, limits={"opt_out": 0.12})
    assert found.problem.limits["opt_out"].by == "country"
    assert sorted(found.proposal.averaged["opt_out"]) == ["city", "device"]
    assert found["segments"].code is FindingCode.LIMIT_ON_AVERAGE_ONLY
    assert sorted(found["segments"].details["columns"]) == ["city", "device"]


def test_a_text_about_the_action_or_of_afterwards_divides_nobody():
    chance = np.random.default_rng(3)
    log = plain_log(12_000, chance)
    log["family"] = np.where(log["action"] == "offer", "loud", "quiet").astype(object)
    log["status"] = np.where(log["opt_out"] == 1, "gone", "here").astype(object)
    found = sw.check_log(log, limits={"opt_out": 0.12})
    assert found.problem.divisions == ()
    assert {"ignored.family", "ignored.status"} <= found.proposal.reasons.keys()


def test_a_segment_without_the_safe_action_leaves_safe_open():
    frame = world_log(8_000, np.random.default_rng(1))
    told = sw.check_log(frame, limits={"opt_out": 0.2}).problem.limits["opt_out"]
    assert told.safe_bound is not None
    assert 0.06 < told.safe_bound < 0.2
    frame["action"] = np.where(frame["country"] == "AU", "offer", frame["action"]).astype(object)
    assert sw.check_log(frame, limits={"opt_out": 0.2}, safe="nothing").problem.limits["opt_out"].safe_bound is None


def test_a_cost_that_a_number_moves_is_proposed_linear():
    chance = np.random.default_rng(1)
    frame = world_log(12_000, chance)
    frame["opt_out"] = (chance.random(12_000) < 0.02 + 0.2 * (frame["age"] > 60)) * 1
    limit = sw.check_log(frame, limits={"opt_out": 0.3}).problem.limits["opt_out"]
    assert limit.model == "linear"
    assert limit.safe_bound is None


def test_columns_may_be_called_as_arguments_and_as_checks_are():
    chance = np.random.default_rng(1)
    frame = world_log(3_000, chance)
    frame["reward"], frame["cost"] = frame.pop("click"), frame.pop("opt_out")
    frame["drift"], frame["leaks"] = chance.random(3_000), chance.integers(0, 50, 3_000)
    found = sw.check_log(frame)
    assert found.columns == {"the_reward": "reward", "the_cost": "cost"}
    assert set(found.problem.context) == {"age", "drift", "leaks"}
    again = sw.check_log(frame, found.problem, columns=found.columns)
    assert again["ranges"].verdict == "ok"


def test_what_is_about_the_action_or_the_time_is_no_number_of_a_user() -> None:
    chance = np.random.default_rng(4)
    sent = chance.integers(0, 2, 400)
    start = np.datetime64("2026-03-01T00:00:00")
    log = {
        "sent_at": start + np.arange(400) * np.timedelta64(60, "s"),
        "template": np.array(["nothing", "offer"])[sent],
        "share_of_template": np.array([0.7, 0.3])[sent],
        "drawn_with": chance.choice([0.4, 0.5], 400),
        "age": chance.integers(18, 80, 400),
        "click": chance.random(400) < 0.1 * sent,
        "opt_out": chance.random(400) < 0.01,
    }
    made = sw.check_log(log, action="template", limits={"opt_out": 0.1}, columns={"propensity": "drawn_with"})
    assert list(made.problem.context) == ["age"]
    assert "share_of_template" in made.proposal.roles.ignored
    assert made.log.at is not None
