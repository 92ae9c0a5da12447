"""The picture of a forecast: what stands where, and that long names neither leave it nor cover each other."""

from itertools import combinations

import pytest
from tests.launch.forecast.test_forecast import SIZE, log

import stagewise as sw
from stagewise.launch.forecast.forecast import Forecast
from stagewise.launch.forecast.forecast_report import plot_forecast

LONG, WORDS = "nothing at all, as we have always done it", "click-through from the mobile application"
COST, LEAST = "opt_out_within_seven_days_of_the_message", "satisfaction"


@pytest.fixture(scope="module")
def long() -> Forecast:
    problem = sw.Problem(
        action_names=[LONG, "digest", "offer"],
        safe_name=LONG,
        reward=sw.Reward(WORDS),
        limits={
            COST: sw.Limit(0.2, safe_bound=0.1, model="rates"),
            LEAST: sw.Limit(sw.AtLeast(0.5), safe_bound=0.8, model="rates"),
        },
    )
    told = log()
    names = ["digest" if name == "digest" else "offer" if name == "offer" else LONG for name in told["action"]]
    rows = {"action": names, WORDS: told["click"], COST: told["opt_out"], LEAST: 1.0 - told["complaint"]}
    return sw.forecast_from_log(rows, problem, limits={COST: [0.15, 0.3], LEAST: [0.6]}, **SIZE)


@pytest.mark.long
@pytest.mark.parametrize("most", [3, 1])
def test_long_names_stay_in_the_picture_and_off_each_other(long: Forecast, most: int) -> None:
    figure = plot_forecast(long, most)
    figure.draw_without_rendering()
    titles = [axes.title for axes in figure.axes]
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend() is not None]
    below = [axes.xaxis.label for axes in figure.axes]
    boxes = [box for each in (*titles, *legends, *below) if (box := each.get_window_extent()).width > 0.0]
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 for box in boxes)
    everything = [*boxes, *(axes.bbox for axes in figure.axes)]
    assert not any(one.overlaps(other) for one, other in combinations(everything, 2))
