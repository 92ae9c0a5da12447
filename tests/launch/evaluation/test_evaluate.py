"""What goes in and what is refused: forms of candidates, where probabilities come from, what is missing, verdicts."""

import json

import numpy as np
import pytest
from tests.launch.evaluation.worlds import NAMES, SHARES, drawn, problem
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.launch.notes import NoteCode
from stagewise.problem.errors import ErrorCode

ROWS = 300
BARE = [f"probability__{name}" for name in NAMES]
FRAME = drawn(np.random.default_rng(11), ROWS)
OWN = np.array([dict(zip(NAMES, SHARES, strict=True))[name] for name in FRAME["action"]])


@pytest.fixture(scope="module")
def frame():
    return FRAME


def bare(frame):
    return {name: column for name, column in frame.items() if not name.startswith("probability.")}


def codes(found):
    return {note.code for note in found.notes}


def values(found):
    return [found[signal][by].value for signal in ("click", "opt_out") for by in ("ips", "snips", "dr")]


def test_every_form_of_a_candidate_is_the_same_policy(frame, tmp_path):
    one_hot = np.zeros((ROWS, 3))
    one_hot[:, 2] = 1.0
    expected = values(sw.evaluate_on_log(frame, problem(), "offer"))
    assert None not in expected
    forms = [one_hot, {"offer": 1.0}, lambda context: "offer", lambda context: {"offer": 1.0}]
    for form in forms:
        assert values(sw.evaluate_on_log(frame, problem(), form)) == expected
    columns = {f"new.{name}": one_hot[:, i] for i, name in enumerate(NAMES)}
    assert values(sw.evaluate_on_log({**frame, **columns}, problem(), "new")) == expected


def test_an_agent_decides_and_does_not_learn(frame, tmp_path):
    agent = sw.Agent(problem(), seed=3)
    agent.learn_log_frame(bare(frame) | {"click": frame["click"], "opt_out": np.zeros(ROWS)})
    agent.save(tmp_path / "agent.json")
    before = agent.round, agent.replica_snapshot().memory
    found = sw.evaluate_on_log(frame, problem(), agent, estimators=["ips"])
    assert (agent.round, agent.replica_snapshot().memory) == before
    assert found.candidate.name == "the agent"
    again = sw.evaluate_on_log(frame, problem(), tmp_path / "agent.json", estimators=["ips"])
    assert again["click"]["ips"].value == found["click"]["ips"].value
    start = sw.evaluate_on_log(frame, problem(), problem(), estimators=["ips"])
    assert 0.0 <= start["click"]["ips"].low <= start["click"]["ips"].high <= 1.0
    with refused(sw.InvalidActions, ErrorCode.PROBLEM_MISMATCH):
        sw.evaluate_on_log(frame, problem(), sw.Agent(problem(action_names=["nothing", "offer"])))


def test_probabilities_come_from_columns_or_from_what_is_said(frame):
    told = dict(zip(NAMES, SHARES.tolist(), strict=True))
    expected = values(sw.evaluate_on_log(frame, problem(), "offer"))
    assert values(sw.evaluate_on_log(bare(frame), problem(), "offer", propensity=told)) == pytest.approx(expected)
    done = np.array([told[name] for name in frame["action"]])
    found = sw.evaluate_on_log({**bare(frame), "propensity": done}, problem(), "offer")
    assert values(found)[:2] == pytest.approx(expected[:2])
    counted = sw.evaluate_on_log(bare(frame), problem(), "offer", propensity="frequencies")
    assert NoteCode.PROPENSITIES_ESTIMATED in codes(counted)
    shares = {name: float((frame["action"] == name).mean()) for name in NAMES}
    by_hand = sum(frame["click"][frame["action"] == "offer"]) / ROWS / shares["offer"]
    assert counted["click"]["ips"].value == pytest.approx(by_hand)


def test_the_own_policy_needs_no_probabilities(frame):
    found = sw.evaluate_on_log(bare(frame), problem())
    assert list(found.policies) == ["logged"]
    assert found["click"]["ips"].value == pytest.approx(frame["click"].mean())
    assert found["click"]["ips"].low < frame["click"].mean() < found["click"]["ips"].high


def test_what_the_log_never_did_is_not_known():
    """A third of the candidate goes where the log could not: the interval is as wide as the range allows there."""
    frame = drawn(np.random.default_rng(12), 20_000, np.array([0.5, 0.5, 0.0]))
    found = sw.evaluate_on_log(frame, problem(), {"nothing": 0.7, "offer": 0.3})
    assert found.candidate.support.by_action == {"offer": pytest.approx(0.3)}
    for by in ("ips", "dr"):
        one = found["click"][by]
        assert one.value is None
        assert one.low < 0.7 * 0.2 < 0.7 * 0.2 + 0.3 < one.high
        assert one.high - one.low < 0.38
    assert found["click"]["snips"].validity == "none"
    assert NoteCode.NO_SUPPORT in codes(found)
    assert found.candidate.verdicts["opt_out"].verdict == "unknown"


def test_a_row_that_was_sure_could_have_been_nothing_else():
    """Half of the users surely got nothing, and the log has propensities alone: of them nothing is known."""
    frame = bare(drawn(np.random.default_rng(18), 4_000))
    sure = np.arange(4_000) % 2 == 0
    done = np.array([dict(zip(NAMES, SHARES, strict=True))[name] for name in frame["action"]])
    frame |= {"action": np.where(sure, "nothing", frame["action"]), "propensity": np.where(sure, 1.0, done)}
    found = sw.evaluate_on_log(frame, problem(), "offer")
    assert found.candidate.support.by_action == {"offer": pytest.approx(0.5)}
    assert found["click"]["dr"].value is None
    assert found["click"]["ips"].high > 0.5
    assert found.candidate.verdicts["opt_out"].verdict == "unknown"


def test_two_actions_need_one_propensity():
    """What is left to the other is known: the same as with columns for both."""
    frame = drawn(np.random.default_rng(19), 3_000, np.array([0.7, 0.0, 0.3]))
    two = problem(action_names=["nothing", "offer"])
    done = np.where(frame["action"] == "offer", 0.3, 0.7)
    alone = sw.evaluate_on_log({**bare(frame), "propensity": done}, two, "offer")
    odds = {"probability.nothing": np.full(3_000, 0.7), "probability.offer": np.full(3_000, 0.3)}
    both = sw.evaluate_on_log({**bare(frame), **odds}, two, "offer")
    assert alone["opt_out"]["dr"].high == pytest.approx(both["opt_out"]["dr"].high, rel=1e-9)
    assert NoteCode.PROPENSITIES_OF_ACTION_ONLY not in codes(alone)


@pytest.mark.parametrize("columns", [True, False])
def test_weights_that_do_not_average_1_are_found(columns):
    """Only the rows of one action were exported: no estimate, no interval, no verdict, and a line that says why."""
    rng = np.random.default_rng(20)
    frame = drawn(rng, 4_000)
    frame = frame if columns else bare(frame) | {"propensity": SHARES[[NAMES.index(name) for name in frame["action"]]]}
    offers = frame["action"] == "offer"
    found = sw.evaluate_on_log({name: column[offers] for name, column in frame.items()}, problem(), "offer")
    for by in ("ips", "snips", "dr"):
        assert found["opt_out"][by].value is None
        assert found["opt_out"][by].validity == "none"
    assert found.candidate.verdicts["opt_out"].verdict == "unknown"
    note = next(note for note in found.notes if note.code is NoteCode.WEIGHTS_CONTRADICT)
    assert note.details["mean"] == pytest.approx(5.0)
    assert note.details["low"] > 1.0
    assert "nan" not in json.dumps(found.to_dict()).lower()
    assert found.policies["logged"]["click"]["ips"].validity == "anytime"
    found.plot().draw_without_rendering()
    some = ~offers | (rng.random(4_000) < 0.5)
    half = sw.evaluate_on_log({name: column[some] for name, column in frame.items()}, problem(), "offer")
    assert half["click"]["ips"].value is None
    assert half["click"]["ips"].validity == ("none" if columns else "anytime")  # half of the users may have had none


@pytest.mark.long
def test_an_honest_log_is_seldom_doubted():
    """Weights of a true lottery average 1: no log of 20 is told that they do not."""
    rng = np.random.default_rng(21)
    for _ in range(20):
        found = sw.evaluate_on_log(drawn(rng, 500), problem(), "offer", estimators=["ips"], primary_estimator="ips")
        assert not {NoteCode.WEIGHTS_CONTRADICT, NoteCode.WEIGHTS_UNBALANCED} & codes(found)
        assert found["click"]["ips"].value is not None


def test_frequencies_judge_no_limit():
    """A design that differed from user to user: opt-outs are 0.2 in truth, and seem to be a twentieth of that."""
    rng = np.random.default_rng(22)
    frail = rng.random(20_000) < 0.5
    offered = rng.random(20_000) < np.where(frail, 0.02, 0.8)
    log = {
        "action": np.where(offered, "offer", "nothing"),
        "click": (rng.random(20_000) < 0.1) * 1.0,
        "opt_out": (offered & frail & (rng.random(20_000) < 0.4)) * 1.0,
    }
    told = problem(
        action_names=["nothing", "offer"], context=[], limits={"opt_out": sw.Limit(0.05, safe_bound=0.0, model="rates")}
    )
    found = sw.evaluate_on_log(log, told, "offer", propensity="frequencies")
    assert found["opt_out"]["dr"].high < 0.05
    assert {one.validity for one in found["opt_out"].values()} == {"if_shares_correct"}
    assert found.candidate.verdicts["opt_out"].verdict == "unknown"
    assert found.policies["safe"].verdicts["opt_out"].verdict == "unknown"
    assert found.policies["logged"].verdicts["opt_out"].verdict == "kept"  # its own mean needs no shares
    assert not found.candidate.limits_kept


def test_clipping_says_what_it_loses_and_stays_right():
    frame = drawn(np.random.default_rng(13), 20_000, np.array([0.89, 0.1, 0.01]))
    clipped = sw.evaluate_on_log(frame, problem(), "offer", weight_bound=20.0)
    assert clipped.candidate.support.clipped == pytest.approx(0.8)
    assert clipped["opt_out"]["ips"].low < 0.1 < clipped["opt_out"]["ips"].high
    assert clipped["opt_out"]["ips"].value is None
    assert sw.evaluate_on_log(frame, problem(), "offer")["opt_out"]["ips"].value is not None


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        (sw.Limit(0.15, safe_bound=0.02, model="rates"), "kept"),
        (sw.Limit(0.05, safe_bound=0.02, model="rates"), "broken"),
        (sw.Limit(0.101, safe_bound=0.02, model="rates"), "unknown"),
        (sw.Limit(sw.AtLeast(0.05), safe_bound=0.5, model="rates"), "kept"),
        (sw.Limit(sw.AtLeast(0.2), safe_bound=0.5, model="rates"), "broken"),
        (sw.Limit(sw.TimesSafe(7.0), safe_bound=0.02, model="rates"), "kept"),
    ],
)
def test_a_limit_is_kept_or_broken_or_unknown(limit, verdict):
    """The candidate's opt-outs are 0.1 in truth."""
    frame = drawn(np.random.default_rng(14), 20_000)
    found = sw.evaluate_on_log(frame, problem(limits={"opt_out": limit}), "offer")
    assert found.candidate.verdicts["opt_out"].verdict == verdict
    assert found.candidate.limits_kept == (verdict == "kept")


def test_a_limit_that_holds_in_every_segment_is_judged_in_each():
    """Three in ten opt out in one country of two: the mean of both is under the limit, and the limit is broken."""
    rng = np.random.default_rng(15)
    frame = drawn(rng, 8_000)
    country = np.where(rng.random(8_000) < 0.1, "NZ", "FR").astype(object)
    frame |= {"country": country, "opt_out": (rng.random(8_000) < np.where(country == "NZ", 0.3, 0.0)) * 1.0}
    told = problem(limits={"opt_out": sw.Limit(0.15, safe_bound=0.02, by="country")})
    found = sw.evaluate_on_log(frame, told)
    assert found["opt_out"]["ips"].high < 0.15
    assert found.candidate.verdicts["opt_out"].verdict == "broken"
    assert set(found.candidate.segments["opt_out"]) == {"country=NZ", "country=FR"}


def test_units_are_the_problems_own(frame):
    scaled = problem(reward=sw.Reward("click", low=-10.0, high=30.0))
    frame = {**frame, "at": np.arange(len(frame["click"]))}  # the lot of other rows would be another
    moved = {**frame, "click": -10.0 + 40.0 * frame["click"]}
    plain, other = (
        sw.evaluate_on_log(frame, problem(), "offer")["click"],
        sw.evaluate_on_log(moved, scaled, "offer")["click"],
    )
    for by in ("ips", "snips", "dr"):
        assert other[by].value == pytest.approx(-10.0 + 40.0 * plain[by].value)
        assert other[by].high == pytest.approx(-10.0 + 40.0 * plain[by].high)


def test_an_open_window_leaves_a_row_out_even_where_it_was_answered(frame):
    """Answers that came early in an open window are those with something to tell: they would be a biased sample."""
    told = problem(limits={"opt_out": sw.Limit(0.15, safe_bound=0.02, window="1h", model="rates")})
    at = np.arange(ROWS) * 60.0
    early = np.where(frame["opt_out"] == 1.0, 1.0, np.nan)
    found = sw.evaluate_on_log({**frame, "at": at, "opt_out": early}, told)
    assert found["opt_out"]["ips"].rows == ROWS - 60
    assert found["opt_out"]["ips"].value == pytest.approx(frame["opt_out"][: ROWS - 60].mean())
    later = sw.evaluate_on_log({**frame, "at": at, "opt_out": early}, told, as_of=at[-1] + 3600.0)
    assert later["opt_out"]["ips"].value == pytest.approx(frame["opt_out"].mean())
    open_still = sw.evaluate_on_log({**frame, "at": at, "opt_out": early}, told, as_of=at[0])
    assert (open_still["opt_out"]["ips"].value, open_still["opt_out"]["ips"].high) == (None, 1.0)


def test_outcomes_that_are_missing_are_told(frame):
    some = frame["opt_out"].copy()
    some[::7] = np.nan
    found = sw.evaluate_on_log({**frame, "opt_out": some}, problem(), "offer")
    assert found["opt_out"]["ips"].rows == ROWS - len(some[::7])
    assert NoteCode.OUTCOMES_MISSING in codes(found)
    uneven = np.where(frame["action"] == "offer", np.nan, frame["opt_out"])
    assert NoteCode.OUTCOMES_MISSING_UNEVENLY in codes(sw.evaluate_on_log({**frame, "opt_out": uneven}, problem()))


def test_one_row_and_no_weight_at_all():
    row = {name: column[:1] for name, column in drawn(np.random.default_rng(17), 5).items()}
    other = next(name for name in NAMES if name != row["action"][0])
    found = sw.evaluate_on_log(row, problem(), other)
    assert (found["click"]["ips"].low, found["click"]["ips"].high) == (0.0, 1.0)
    assert (found["click"]["snips"].value, found["click"]["snips"].validity) == (None, "none")
    assert found.candidate.effective_sample_size == 0.0


@pytest.mark.long
def test_json_and_table(frame):
    found = sw.evaluate_on_log(frame, problem(), "offer")
    assert (
        json.loads(json.dumps(found.to_dict()))["policies"][0]["signals"]["click"]["snips"]["validity"] == "asymptotic"
    )
    lines = str(found).splitlines()
    assert len([line for line in lines if line.startswith("always offer ")]) == 6


@pytest.mark.long
def test_the_picture_shows_every_interval_and_the_limit(frame):
    found = sw.evaluate_on_log(frame, problem(), "offer")
    for axes, signal in zip(found.plot().axes, ("click", "opt_out"), strict=True):
        expected = [
            (one.low, one.value, one.high) for policy in found.policies.values() for one in policy[signal].values()
        ]
        bars = [collection.get_segments()[0][:, 1] for collection in axes.collections]
        marks = [line.get_ydata()[0] for line in axes.lines if line.get_marker() != "None"]
        assert [(low, mark, high) for (low, high), mark in zip(bars, marks, strict=True)] == expected
    assert axes.lines[-1].get_ydata()[0] == found.candidate.verdicts["opt_out"].threshold


def changed(frame, **columns):
    """Return a log with other columns, and without those that are None."""
    table = {**frame, **{name.replace("__", "."): column for name, column in columns.items()}}
    return {name: column for name, column in table.items() if column is not None}


@pytest.mark.parametrize(
    ("columns", "arguments", "code"),
    [
        (
            {"probability__offer": np.zeros(ROWS), "probability__nothing": np.full(ROWS, 0.7)},
            {},
            ErrorCode.INVALID_PROBABILITY,
        ),
        ({"probability__offer": np.full(ROWS, 20.0)}, {}, ErrorCode.INVALID_PROBABILITY),
        ({"probability__offer": np.full(ROWS, -0.2)}, {}, ErrorCode.INVALID_PROBABILITY),
        ({"probability__offer": np.full(ROWS, 0.4)}, {}, ErrorCode.INVALID_PROBABILITY),
        ({"probability__offer": np.full(ROWS, 0.1)}, {}, ErrorCode.INVALID_PROBABILITY),
        ({"probability__offer": np.full(ROWS, np.nan)}, {}, ErrorCode.PROPENSITY_MISSING),
        ({"propensity": np.full(ROWS, 0.9)}, {}, ErrorCode.INVALID_PROBABILITY),
        ({"click": np.full(ROWS, 2.0)}, {}, ErrorCode.OUTCOME_OUT_OF_RANGE),
        ({"click": np.full(ROWS, np.nan), "opt_out": np.full(ROWS, np.nan)}, {}, ErrorCode.LOG_EMPTY),
        ({"shown": np.zeros(ROWS, dtype=bool)}, {}, ErrorCode.LOG_EMPTY),
        ({}, {"propensity": 25}, ErrorCode.INVALID_PROBABILITY),
        ({}, {"propensity": 0.25}, ErrorCode.INVALID_PROBABILITY),
        ({}, {"propensity": "guess"}, ErrorCode.WRONG_TYPE),
        ({}, {"propensity": {"ofer": 1.0}}, ErrorCode.UNKNOWN_ACTION),
        ({}, {"propensity": {"offer": 1.0}}, ErrorCode.INVALID_PROBABILITY),
        ({}, {"propensity": {"offer": 0.5, "nothing": 0.2, "digest": 0.2}}, ErrorCode.INVALID_PROBABILITY),
        ({}, {"candidate": np.full((ROWS, 3), 100.0 / 3.0)}, ErrorCode.INVALID_PROBABILITY),
        ({}, {"candidate": np.full((ROWS, 3), 0.5)}, ErrorCode.INVALID_PROBABILITY),
        ({}, {"candidate": np.full((ROWS, 2), 0.5)}, ErrorCode.WRONG_SHAPE),
        ({}, {"candidate": {"offer": 50, "digest": 50}}, ErrorCode.INVALID_PROBABILITY),
        ({}, {"candidate": {"ofer": 1.0}}, ErrorCode.UNKNOWN_ACTION),
        ({}, {"candidate": "ofer"}, ErrorCode.UNKNOWN_NAME),
        ({}, {"candidate": lambda context: None}, ErrorCode.CALLBACK_FAILED),
        (dict.fromkeys(BARE), {}, ErrorCode.PROPENSITY_MISSING),
        (dict.fromkeys(BARE) | {"propensity": OWN}, {"weight_bound": 2.0}, ErrorCode.PROPENSITY_MISSING),
        ({}, {"weight_bound": 0.5}, ErrorCode.OUT_OF_RANGE),
        ({}, {"delta": 5}, ErrorCode.OUT_OF_RANGE),
        ({}, {"estimators": []}, ErrorCode.MISSING_VALUE),
        ({}, {"primary_estimator": "snips"}, ErrorCode.UNSUPPORTED),
        ({}, {"primary_estimator": "best"}, ErrorCode.INVALID_CHOICE),
    ],
)
def test_invalid_arguments_are_rejected(frame, columns, arguments, code):
    candidate = arguments.get("candidate", "offer")
    others = {name: value for name, value in arguments.items() if name != "candidate"}
    with pytest.raises(sw.StagewiseError) as caught:
        sw.evaluate_on_log(changed(frame, **columns), problem(), candidate, **others)
    assert caught.value.code is code
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_actions_that_the_problem_does_not_have_count_for_no_candidate(frame):
    other = np.where(frame["action"] == "digest", "letter", frame["action"]).astype(object)
    shares = {"nothing": 0.5, "offer": 0.2}
    found = sw.evaluate_on_log({**bare(frame), "action": other}, problem(), "offer", propensity=shares)
    assert found["click"]["ips"].value == pytest.approx(
        sw.evaluate_on_log(frame, problem(), "offer")["click"]["ips"].value
    )
