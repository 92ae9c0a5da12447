"""What runs come to."""

import numpy as np
from tests.studies.people import six

from stagewise.records.reason import FallbackReason
from stagewise_studies import tally
from stagewise_studies.replay import People, always


def test_a_row_counts_rounds_and_runs_over_the_limit() -> None:
    people = six()
    played = tally.simulate_policies(people, {"some": always(people, "some"), "none": always(people, "none")}, 3, 1000)
    row = tally.build_row("some", played["some"], "group", 0.5)
    ill = np.mean([(track.people >= 3).mean() for track in played["some"]])
    assert row["rounds over the limit"] == round(float(ill), 5)
    assert row["runs over the limit"] == 3
    assert tally.build_row("none", played["none"], "group", 0.5)["runs over the limit"] == 0
    assert tally.compute_costs_by_group(people, played["none"], "group") == [0.0, 0.0]
    well, bad = tally.compute_costs_by_group(people, played["some"], "group")
    assert well == 0.0
    assert abs(bad - 2 / 3) < 0.1
    assert tally.compute_shares_over(played["some"], ["group", "all"], 0.5) == {
        "group": row["rounds over the limit"],
        "all": 0.0,
    }


def test_a_curve_is_beside_the_same_people_under_the_baseline() -> None:
    people = six()
    played = tally.simulate_policies(people, {"some": always(people, "some")}, 2, 80)["some"]
    assert set(tally.compute_curve(played, played)["gain"]["middle"]) == {0.0}
    assert len(tally.compute_curve(played, played)["cost"]["low"]) == tally.WINDOWS


def test_a_cost_that_is_no_line_is_found_out_by_decile() -> None:
    x = np.linspace(-1.0, 1.0, 1000)
    cost = np.column_stack([0.5 + 0.4 * x, (x > 0.8) * 1.0])
    people = People(("line", "step"), [{}] * 1000, np.zeros((1000, 2)), cost, {})
    misfit = tally.measure_linear_misfit(x[:, np.newaxis], people)
    assert max(abs(cell["predicted"] - cell["observed"]) for cell in misfit["deciles"]["line"]) < 1e-3
    assert misfit["largest gap"] > 0.5
    assert misfit["typical gap"] < misfit["largest gap"]


def test_who_passes_whom_and_when() -> None:
    curves = {"one": {"gain": {"middle": [0.0, 2.0, 0.0, 2.0]}}, "other": {"gain": {"middle": [1.0, 1.0, 1.0, 1.0]}}}
    assert tally.find_passing_round(curves, "one", "other", 400) == 300
    assert tally.find_passing_round(curves, "other", "one", 400) is None
    always_above = {"one": {"gain": {"middle": [2.0, 2.0]}}, "other": {"gain": {"middle": [1.0, 1.0]}}}
    assert tally.find_passing_round(always_above, "one", "other", 400) == 0


def test_a_run_that_the_data_stopped_is_counted() -> None:
    track = always(six(), "none").play(six(), 10, 0)
    why = {
        FallbackReason.SAFE_ACTION_COST_UNCERTAIN: (0, "not yet"),
        FallbackReason.ASSUMPTION_CONTRADICTED: (7, "not as declared"),
    }
    runs = [track, track._replace(fallbacks=why)]
    assert tally.list_stopped_rounds(runs) == [7]
    assert tally.build_row("one", runs, "group", 0.5)["runs stopped"] == 1


def test_the_worst_group_is_one_of_some_size() -> None:
    people = six()
    runs = tally.simulate_policies(people, {"some": always(people, "some")}, 1, 2000)["some"]
    worst = tally.find_worst_group(people, runs, "group", least=3)
    assert worst is not None
    assert (worst["group"], worst["people"]) == ("1", 3)
    assert worst["cost"] > 0.5
    assert tally.find_worst_group(people, runs, "group", least=4) is None
