"""Randomised trials on tables that are made up: what an action did to a group is what policies are judged by."""

import json
import struct
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise_studies.cases import actg, incentive
from stagewise_studies.columns import parse_stata, parse_text
from stagewise_studies.source import DataUnavailable
from stagewise_studies.study import Size
from stagewise_studies.trial import EVERYBODY, GROUP, Trial, evaluate_holdout, split_halves


def stata(columns: dict[str, list[float | None]]) -> bytes:
    """Return a Stata file of release 118 with columns of doubles; None is Stata's own missing value."""
    rows = len(next(iter(columns.values())))
    head = b"<stata_dta><header><release>118</release><byteorder>LSF</byteorder>"
    head += b"<K>" + struct.pack("<H", len(columns)) + b"</K><N>" + struct.pack("<Q", rows) + b"</N></header>"
    kinds = b"<variable_types>" + struct.pack("<H", 65526) * len(columns) + b"</variable_types>"
    names = b"<varnames>" + b"".join(name.encode().ljust(129, b"\0") for name in columns) + b"</varnames>"
    cells = [2.0**1023 if v is None else v for row in zip(*columns.values(), strict=True) for v in row]
    return head + kinds + names + b"<data>" + struct.pack(f"<{len(cells)}d", *cells) + b"</data></stata_dta>"


def test_stata_files_are_read_with_what_is_missing() -> None:
    table = parse_stata(stata({"age": [30.0, None], "got": [1.0, 0.0]}))
    np.testing.assert_array_equal(table["age"], [30.0, np.nan])
    np.testing.assert_array_equal(table["got"], [1.0, 0.0])
    with pytest.raises(DataUnavailable, match="release 118"):
        parse_stata(b"<stata_dta><header><release>119</release>")


def offered(people: int = 400) -> Trial:
    chance = np.random.default_rng(1)
    sums = chance.choice([0.0, 0.4, 0.9, 1.9, 2.8], people)
    came = (chance.random(people) < 0.3 + 0.5 * (sums > 0)).astype(float)
    columns = {"got": came.tolist(), "tinc": sums.tolist(), "age": [30.0] * people}
    columns["distvct"] = chance.uniform(0.0, 5.0, people).tolist()
    columns["got"][0], columns["age"][1] = None, None
    return incentive.build_trial(parse_stata(stata(columns)))


def treated(people: int = 400) -> Trial:
    chance = np.random.default_rng(2)
    head = "age,wtkg,karnof,strat,offtrt,cd40,cd420,arms"
    arms = chance.integers(0, 4, people)
    rows = [
        f"30,70,100,{1 + i % 3},{int(chance.random() < 0.3)},300,{300 + 50 * (a - 1)},{a}" for i, a in enumerate(arms)
    ]
    return actg.build_trial(parse_text("\n".join([head, *rows]).encode()))


def test_what_is_paid_is_the_sum_of_those_who_came() -> None:
    trial = offered()
    assert trial.taken.size == 398  # two of whom something is not known are left out
    assert np.all(trial.cost[trial.reward == 0.0] == 0.0)
    assert np.all(trial.cost[trial.taken == 0] == 0.0)
    paid = trial.cost[(trial.taken == 3) & (trial.reward == 1.0)]
    np.testing.assert_allclose(paid, 1.9)
    problem = incentive.problem(0.75)
    assert trial.cost.max() <= problem.limits["spent"].high


def test_a_count_that_has_not_fallen_is_what_is_wanted() -> None:
    trial = treated()
    np.testing.assert_array_equal(trial.reward, trial.taken >= 1)
    assert set(trial.groups.tolist()) == {0, 1, 2}


def test_people_of_a_trial_have_the_rates_of_their_group() -> None:
    trial = treated()
    people = trial.people()
    some = (trial.groups == 1) & (trial.taken == 2)
    np.testing.assert_allclose(people.cost[trial.groups == 1, 2], trial.cost[some].mean())
    assert set(people.groups) == {EVERYBODY, GROUP}


def test_halves_are_the_same_every_time_and_share_nobody() -> None:
    first, second = split_halves(offered())
    again, _ = split_halves(offered())
    np.testing.assert_array_equal(first, again)
    assert not set(first.tolist()) & set(second.tolist())
    assert first.size + second.size == 398


def test_the_half_that_nobody_learned_from_is_what_is_evaluated() -> None:
    trial = treated()
    rows = evaluate_holdout(trial, {"guarded": actg.problem(0.6)}, 0.25)
    assert [row["policy"] for row in rows] == ["guarded", *actg.ACTIONS]
    _, second = split_halves(trial)
    assert rows[-1]["people it counts as"] == np.count_nonzero(trial.taken[second] == 3)
    assert all(row["broken_off, from"] <= row["broken_off"] <= row["broken_off, to"] for row in rows)
    changed = Trial(**{**vars(trial), "reward": np.where(np.isin(np.arange(400), second), trial.reward, 0.0)})
    result = evaluate_holdout(changed, {"guarded": actg.problem(0.6)}, 0.25)[
        1:
    ]  # what the first half says changes no estimate
    assert result == rows[1:]


@pytest.mark.parametrize(("case", "trial"), [(incentive, offered), (actg, treated)])
def test_a_whole_study_on_a_small_table(case: Any, trial: Any) -> None:
    people = trial()
    result = {"size": {"seeds": 1, "rounds": 50}, **case.play(people, case.policies(people), Size(1, 50))}
    json.dumps(result)
    rows = {row["policy"]: row for row in result["rows"]}
    assert rows["safe"]["runs over the limit"] == 0
    assert rows["guarded"]["runs over the limit"] == 0
    assert {claim.message for claim in case.claims(result)}
    assert len(case.picture(result).axes) == 4
    assert isinstance(case.problem(0.6), sw.Problem)
