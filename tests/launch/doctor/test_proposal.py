"""A problem is proposed: it loads, says why, keeps its rows apart, and what it promises holds."""

import re

import numpy as np
import pytest
from tests.chance import allowed
from tests.launch.doctor.jobs import RANGES, clean

import stagewise as sw
from stagewise.launch.log import Log

DELTA = 0.1
COUNTRIES = np.array(["NZ", "AU"], dtype=object)
OPT_OUTS = np.array([[0.06, 0.06], [0.08, 0.3], [0.12, 0.12]])  # by action and country; the limit is .2
CLICKS = np.array([0.1, 0.5, 0.3])
NAMES = ["nothing", "offer", "digest"]


def world_log(rows, chance):
    sent, where = chance.integers(0, 3, rows), chance.integers(0, 2, rows)
    return {
        "action": np.array(NAMES, dtype=object)[sent],
        "age": chance.uniform(18.0, 90.0, rows).round(1),
        "country": COUNTRIES[where],
        "click": (chance.random(rows) < CLICKS[sent]) * 1,
        "opt_out": (chance.random(rows) < OPT_OUTS[sent, where]) * 1,
    }


def one_run(run, rows, users):
    """Propose from a log, learn from its rest, decide; say whether the limit was truly broken, and if it dared."""
    chance = np.random.default_rng([31, run])
    found = sw.doctor(world_log(rows, chance), limits={"opt_out": 0.2}, safe="nothing", delta=DELTA)
    agent = sw.Agent(found.problem, seed=run)
    agent.learn_frame(found.rest.frame())
    broken, dared = False, False
    for _ in range(users):
        user, where = {"age": float(chance.uniform(18.0, 90.0))}, int(chance.integers(0, 2))
        user |= {"country": str(COUNTRIES[where])} if found.problem.divisions else {}
        decision = agent.decide(user)
        shares = np.array([decision.probabilities[name] for name in NAMES])
        broken |= bool(shares @ OPT_OUTS[:, where] > 0.2 + 1e-9)
        dared |= decision.name != "nothing"
        place = NAMES.index(decision.name)
        luck = chance.random(2) < [CLICKS[place], OPT_OUTS[place, where]]
        agent.learn(decision, click=bool(luck[0]), opt_out=bool(luck[1]))
    return broken, dared


@pytest.mark.parametrize(
    ("runs", "rows", "users"),
    [
        pytest.param(4, 3_000, 25, id="few"),
        pytest.param(300, 3_000, 300, id="many", marks=[pytest.mark.slow, pytest.mark.compiled]),
    ],
)
def test_what_is_proposed_keeps_the_guarantee(runs, rows, users):
    """The offer keeps the limit on average and breaks it in one country, which the doctor has to find."""
    broken, dared = np.array([one_run(run, rows, users) for run in range(runs)]).sum(axis=0)
    print(f"{broken} of {runs} proposed problems break a limit, {allowed(runs, DELTA)} may; {dared} dare something")
    assert broken <= allowed(runs, DELTA)
    assert dared > 0.9 * runs


def test_the_file_says_why_and_is_the_problem(tmp_path):
    found = sw.doctor(clean(5, 6_000), limits={"opt_out": 0.02, "complaint": None})
    path = tmp_path / "problem.toml"
    path.write_text(found.toml(), encoding="utf-8")
    loaded = sw.Problem.load(path)
    assert loaded.plain() == found.problem.plain()
    for line in found.toml().splitlines():
        if re.match(r"(at_most|high|delta|\w+ = \[\d)", line):
            assert "  # " in line, line
    assert "would void the guarantee" in found.toml()
    assert "PROPOSED, so decide" in found.toml()
    assert loaded.delta == pytest.approx(0.04)
    for name, (low, high) in loaded.ranges:
        assert low <= RANGES[name][0] + 0.2
        assert high >= RANGES[name][1] - 0.2


def test_rows_that_were_looked_at_are_not_left_to_learn_from():
    frame = clean(5, 4_000)
    found = sw.doctor(frame, limits=["opt_out"], reward="click", share=0.3)
    chosen = found.log.taken(found.proposal.split.chosen_from)
    assert chosen.rows == 1_200
    assert found.rest.rows == 2_800
    assert chosen.at.max() < found.rest.at.min()
    del frame["at"]
    found = sw.doctor(frame, limits=["opt_out"], reward="click")
    chosen = found.log.taken(found.proposal.split.chosen_from)
    assert chosen.rows + found.rest.rows == found.log.rows == 4_000
    assert abs(chosen.rows - 2_000) < 200
    both = np.concatenate([chosen.arrays["distance"], found.rest.arrays["distance"]])
    assert sorted(both) == sorted(frame["distance"])
    assert isinstance(found.rest, Log)


def test_without_a_split_the_choice_is_paid_for():
    frame = clean(5, 4_000)
    frame["browser"] = np.array(["a", "b"], dtype=object)[np.arange(4_000) % 2]
    apart, together = (sw.doctor(frame, limits=["opt_out"], share=share) for share in (0.5, None))
    assert together.rest.rows == together.log.rows == 4_000
    assert together.problem.delta == pytest.approx(apart.problem.delta / 4)  # a rate, two columns of text, or linear
    assert "forms chosen among" in together.toml()


def test_a_leak_is_left_out_and_a_segment_is_kept():
    chance = np.random.default_rng(1)
    frame = world_log(8_000, chance)
    frame["pages_after"] = frame["click"] * 3 + chance.random(8_000)
    found = sw.doctor(frame, limits={"opt_out": 0.2})
    assert "pages_after" not in found.problem.context
    assert "'pages_after' is left out: it foretells 'click'" in found.toml()
    assert found.problem.limits["opt_out"].by == "country"


def test_a_segment_without_the_safe_action_leaves_safe_open():
    frame = world_log(8_000, np.random.default_rng(1))
    told = sw.doctor(frame, limits={"opt_out": 0.2}).problem.limits["opt_out"]
    assert told.safe is not None
    assert 0.06 < told.safe < 0.2
    frame["action"] = np.where(frame["country"] == "AU", "offer", frame["action"]).astype(object)
    assert sw.doctor(frame, limits={"opt_out": 0.2}, safe="nothing").problem.limits["opt_out"].safe is None


def test_a_cost_that_a_number_moves_is_proposed_linear():
    chance = np.random.default_rng(1)
    frame = world_log(12_000, chance)
    frame["opt_out"] = (chance.random(12_000) < 0.02 + 0.2 * (frame["age"] > 60)) * 1
    limit = sw.doctor(frame, limits={"opt_out": 0.3}).problem.limits["opt_out"]
    assert limit.model == "linear"
    assert limit.safe is None


def test_columns_may_be_called_as_arguments_and_as_checks_are():
    chance = np.random.default_rng(1)
    frame = world_log(3_000, chance)
    frame["reward"], frame["cost"] = frame.pop("click"), frame.pop("opt_out")
    frame["drift"], frame["leaks"] = chance.random(3_000), chance.integers(0, 50, 3_000)
    found = sw.doctor(frame)
    assert found.names == {"the_reward": "reward", "the_cost": "cost"}
    assert set(found.problem.context) == {"age", "drift", "leaks"}
    again = sw.doctor(frame, found.problem, names=found.names)
    assert again["ranges"].verdict == "ok"


def test_texts_that_are_numbers_are_taken_for_numbers():
    frame = world_log(2_000, np.random.default_rng(1))
    frame["age"] = [f"{value}" for value in frame["age"]]
    assert sw.doctor(frame, limits=["opt_out"]).problem.context["age"][0] <= 18.0


def test_amounts_get_a_range_of_their_own():
    frame = world_log(2_000, np.random.default_rng(1))
    frame["spend"] = np.random.default_rng(2).gamma(2.0, 20.0, 2_000).round(2)
    found = sw.doctor(frame, limits={"spend": 60.0}, reward="click")
    limit = found.problem.limits["spend"]
    assert limit.low == 0.0
    assert limit.high >= frame["spend"].max() or found["ranges"].verdict == "ok"
    assert limit.safe is None or limit.safe < 60.0


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
    made = sw.doctor(log, action="template", limits={"opt_out": 0.1}, names={"propensity": "drawn_with"})
    assert list(made.problem.context) == ["age"]
    assert "share_of_template' is left out: it is the same in all rows of an action" in made.toml()
    assert "by time" in str(made)
