"""What is drawn of results: every limit by name, the safe action's reward and costs, each policy in its colour."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.records.random_key import RandomKey
from stagewise.reports.result import format_table, plot_results

WORLD = sw.ArmsWorld(reward=[0.1, 0.5, 0.9], cost=[[0.0, 0.2, 0.6], [0.9, 0.8, 0.3]])
SAFE = sw.SafeAction(arm=0, reward=0.1, cost=[0.0, 0.9])
LIMITS = {"spend $": 0.3, "kept": sw.AtLeast(0.6)}


def played(kind: Any = sw.OPB) -> sw.Result:
    policy = kind(arms=3, safe_action=SAFE, threshold=LIMITS)
    return sw.simulate(policy, WORLD, rounds=60, runs=3, record_points=6, progress=False)


def words_in(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def heights(axes: Any) -> set[float]:
    """Return where lines lie that run from edge to edge."""
    return {round(line.get_ydata()[0], 9) for line in axes.lines if list(line.get_xdata()) == [0, 1]}


def test_a_picture_names_every_limit_and_the_safe_action() -> None:
    figure = played().plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        *("reward of a round, expected", r"spend \$ of a round, expected", "kept of a round, expected"),
        "cumulative regret",
    ]
    assert words_in(figure.axes[0]) == ["optimum", "the safe action"]
    assert words_in(figure.axes[1]) == ["the safe action", r"spend \$ ≤ 0.3"]
    assert words_in(figure.axes[2]) == ["the safe action", "kept ≥ 0.6"]
    assert [heights(axes) for axes in figure.axes] == [{0.1}, {0.0, 0.3}, {0.9, 0.6}, set()]
    for axes, limit in zip(figure.axes[1:3], (0.3, 0.6), strict=True):
        low, high = axes.get_ylim()
        assert low < limit < high


def test_policies_are_compared_in_the_same_panels() -> None:
    figure = plot_results({"guarded": played(), "free": played(sw.UCB)})
    assert len(figure.axes) == 4
    for axes in figure.axes:
        colours = [line.get_color() for line in axes.lines if len(line.get_xdata()) == 6][:2]
        assert len(set(colours)) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["guarded", "free"]
    assert words_in(figure.axes[1]).count(r"spend \$ ≤ 0.3") == 1


def test_the_worst_of_a_limit_from_below_is_the_least() -> None:
    free = sw.simulate(sw.UCB(arms=3, threshold=LIMITS), WORLD, rounds=60, runs=3, record_points=6, progress=False)
    assert free.max_cost.tolist() == [[0.6, 0.3]] * 3
    mixed = dataclasses.replace(free, max_cost=np.array([[0.2, 0.3], [0.6, 0.8], [0.4, 0.5]]))
    assert "| 0.6000, 0.3000 |" in format_table({"free": mixed})
    assert words_in(free.plot().axes[2]) == ["kept ≥ 0.6"]  # there is no safe action to tell it by


def test_a_result_of_before_has_no_safe_action_to_draw(tmp_path: Path) -> None:
    result = played()
    result.save(tmp_path)
    again = sw.Result.load(tmp_path)
    assert np.array_equal(again.safe, np.tile([0.1, 0.0, 0.9], (3, 1)))  # type: ignore[arg-type]
    old = sw.Result(**{**vars(result), "safe": None})
    assert words_in(old.plot().axes[0]) == ["optimum"]
    old.save(tmp_path)
    assert sw.Result.load(tmp_path).safe is None


def test_where_users_come_the_safe_action_is_drawn_for_the_mean_user() -> None:
    world = sw.ContextWorld(
        reward=[[0.1, 0.3], [0.1, 0.4]],
        cost=[[0.0, 0.01], [0.0, 0.05]],
        segments=[0.25, 0.75],
        segment_offsets=[[[0.1, 0.2], [0.0, 0.0]], [[0.0, 0.01], [0.0, 0.0]]],
    )
    users = [world.actions_in(RandomKey(seed=3, round=t)).features[0] for t in range(4000)]
    seen = np.mean([world.means(user) for user in users], axis=0)
    assert world.actions.mean_at_safe(world.parameters) == pytest.approx(seen, abs=0.01)
    assert world.actions.mean_at_safe(world.parameters) == pytest.approx([0.425, 0.0125])


def test_safe_points_of_all_directions_come_to_nothing_on_average() -> None:
    world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RandomRaySet(3, 2, safe=0.2), noise=0.1)
    draws = [world.actions_in(RandomKey(seed=3, round=t)).round_safe_action.features for t in range(4000)]  # type: ignore[union-attr]
    assert world.actions.mean_at_safe(world.parameters) == pytest.approx([0.0, 0.0])
    assert np.mean(draws, axis=0) @ world.parameters.T == pytest.approx([0.0, 0.0], abs=0.01)
