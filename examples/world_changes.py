"""Opt-outs of one offer rise slowly, or jump overnight: three declarations (docs/tutorials/when-the-world-changes.md).

python examples/world_changes.py            # a table
python examples/world_changes.py picture    # the same, and docs/pictures/world-changes.png
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stagewise as sw

DAY, DAYS, USERS, LIMIT = 86_400.0, 90, 300, 0.05
ACTIONS = ["nothing", "digest", "offer"]
CLICKS = np.array([0.0, 0.1, 0.14])
DECLARED: dict[str, Any] = {"nothing": None, "slope": "0.05/30d", "jumps": "jumps"}


def opt_outs(story: str, day: int) -> np.ndarray:
    """Return the true opt-out rates on a day: of "offer" they rise from day 30 to 60, or jump on day 45."""
    offer = 0.015 + 0.045 * min(max((day - 30) / 30, 0.0), 1.0) if story == "rise" else 0.015 if day < 45 else 0.09
    return np.array([0.0, 0.01, offer])


class Course(NamedTuple):
    """What an agent did, day by day."""

    costs: np.ndarray  # expected opt-outs of a decision
    offers: np.ndarray  # share of "offer"
    digests: np.ndarray
    found: int | None  # the day on which a change was found


def play(story: str, drift: Any, seed: int = 1) -> Course:
    """Play a story with one declaration; outcomes are learned before the next day."""
    limits = {"opt_out": sw.Limit(LIMIT, safe_bound=0.0, drift=drift)}
    problem = sw.Problem(action_names=ACTIONS, safe_name="nothing", reward=sw.Reward("click"), limits=limits)
    agent, chance, shares, costs, found = sw.Agent(problem, seed=seed), np.random.default_rng(seed), [], [], None
    for day in range(DAYS):
        rates, now = opt_outs(story, day), 1.76e9 + day * DAY
        decided = agent.decide_frame({"user_id": np.arange(USERS)}, run=f"day {day}", now=now)
        played = np.array([ACTIONS.index(name) for name in decided["action"]])
        weights = np.column_stack([decided[f"probability.{name}"] for name in ACTIONS])
        shares.append(weights.mean(axis=0))
        costs.append(float((weights @ rates).mean()))
        outcomes = {"decision_id": decided["decision_id"], "click": chance.random(USERS) < CLICKS[played]}
        agent.learn_outcomes({**outcomes, "opt_out": chance.random(USERS) < rates[played]}, now=now + DAY / 2)
        bad = [one for one in agent.health() if one.verdict in ("warning", "contradicted")]
        found = day if bad and found is None else found
    offers = np.array(shares)
    return Course(np.array(costs), offers[:, 2], offers[:, 1], found)


def describe(name: str, course: Course) -> str:
    """Return one line of the table."""
    over = int((course.costs > LIMIT + 1e-9).sum())
    found = "–" if course.found is None else f"day {course.found}"
    last = slice(DAYS - 10, DAYS)
    return (
        f"{name:<8} {over:>9} {course.costs.max():>10.3f} {found:>8} "
        f"{course.offers[last].mean():>7.0%} {course.digests[last].mean():>7.0%}"
    )


def draw(courses: dict[str, dict[str, Course]]) -> Any:
    """Return the picture: above the cost of a decision beside its limit, below the share of the offer."""
    from stagewise.reports.style import STYLES, draw_limit_line, format_axes, make_figure

    figure, axes = make_figure(2, 2, width=5.0, height=2.6)
    for column, (story, of_story) in enumerate(courses.items()):
        days, truth = np.arange(DAYS), [opt_outs(story, day)[2] for day in range(DAYS)]
        axes[0, column].plot(days, truth, color="black", linestyle=":", label="true rate of the offer")
        for (name, course), (colour, dashes) in zip(of_story.items(), STYLES, strict=False):
            axes[0, column].plot(days, course.costs, color=colour, linestyle=dashes)
            axes[1, column].plot(days, course.offers, color=colour, linestyle=dashes, label=f"declared: {name}")
        format_axes(axes[0, column], f"opt-outs of the offer {story}: expected cost of a decision", "", "opt-outs")
        draw_limit_line(axes[0, column], LIMIT, "limit")
        format_axes(axes[1, column], "share of the offer", "day", "share")
        axes[1, column].set_ylim(-0.02, 1.02)
    axes[0, 0].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(0.05, 0.62))
    axes[1, 0].legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.11, 0.05))
    return figure


def main(picture: bool = False) -> None:
    """Print the table, and draw the picture."""
    courses: dict[str, dict[str, Course]] = {}
    for story in ("rise", "jump"):
        print(f"{story:<8} {'days over':>9} {'worst day':>10} {'found':>8} {'offer':>7} {'digest':>7}")
        courses[story] = {name: play(story, drift) for name, drift in DECLARED.items()}
        for name, course in courses[story].items():
            print(describe(name, course))
    if picture:
        from stagewise.reports.style import write_figure

        write_figure(draw(courses), Path(__file__).parents[1] / "docs" / "pictures" / "world-changes.png")


if __name__ == "__main__":
    main("picture" in sys.argv[1:])
