"""An agent's report as a picture, made from its plain values: a file of them is as good as the agent."""

from collections.abc import Mapping
from typing import Any

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.style import GUARDED, SAFE, STYLES, plain, plain_axes

MOST = 20
SHOWN = ("exploring", "exploiting", "safe", "reward", "safe_reward")


def draw_report(report: Any) -> Any:
    """Return a matplotlib figure of `agent.report()`, or of its `plain()`: traffic, rewards, limits, also by segment.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
    >>> agent = sw.Agent(policy)
    >>> _ = agent.decide(sw.Arms(2))
    >>> len(draw_report(agent.report()).axes)
    3
    """
    from matplotlib.figure import Figure

    told = values_of(report)
    divided = list(dict.fromkeys((one["limit"], one["by"], one["threshold"]) for one in told["segments"]))
    figure = Figure(figsize=(12.0, 3.6 * (1 + bool(divided))), layout="constrained")
    rows = figure.add_gridspec(1 + bool(divided), 1)
    above = rows[0].subgridspec(1, 3)
    draw_traffic(figure.add_subplot(above[0]), told)
    draw_rewards(figure.add_subplot(above[1]), told)
    places = above[2].subgridspec(max(len(told["limits"]), 1), 1)
    for place, limit in enumerate(told["limits"] or [None]):  # each in units of its own
        draw_limit(figure.add_subplot(places[place]), limit, place == 0)
    if divided:
        below = rows[1].subgridspec(1, len(divided))
        for place, head in enumerate(divided):
            its = [one for one in told["segments"] if one["limit"] == head[0]]
            draw_segments(figure.add_subplot(below[place]), head, its)
    return figure


def draw_traffic(axes: Any, told: Mapping[str, Any]) -> None:
    """Draw who gets what."""
    actions = sorted(told["actions"], key=lambda action: -action["share"])[:MOST]
    labels = [plain(action["name"]) for action in actions]
    places = range(len(actions))
    axes.barh(
        [p - 0.2 for p in places], [a["share"] for a in actions], 0.4, color=SAFE, alpha=0.5, label="of all rounds"
    )
    axes.barh([p + 0.2 for p in places], [a["recent"] for a in actions], 0.4, color=GUARDED, label="recently")
    plain_axes(axes, title_of(told))
    axes.set(yticks=list(places), yticklabels=labels, xlim=(0.0, 1.0))
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.invert_yaxis()
    axes.legend(frameon=False)


def draw_rewards(axes: Any, told: Mapping[str, Any]) -> None:
    """Draw what rounds earn now, and what the safe action does."""
    words = {"reward": "now", "safe_reward": "safe action"}
    rows = [(words[name], told[name]) for name in words if told[name] is not None]
    for place, (name, one) in enumerate(rows):
        colour = GUARDED if name == "now" else SAFE
        axes.plot([one["low"], one["high"]], [place, place], color=colour, linewidth=3)
        axes.plot(one["estimate"], place, "o", color=colour)
    plain_axes(axes, f"{plain(told['reward_name'])} of a round, beside the safe action's")
    axes.set(yticks=range(len(rows)), yticklabels=[name for name, _ in rows])
    axes.set_ylim(-0.6, max(len(rows), 1) - 0.4)


def draw_limit(axes: Any, limit: Mapping[str, Any] | None, first: bool) -> None:
    """Draw a cost of a round beside its limit, which is named with its threshold."""
    plain_axes(axes, "costs of a round, expected to worst" if first else "")
    axes.set(yticks=[], ylim=(-0.8, 1.0))
    if limit is None:
        return
    axes.plot([limit["estimate"], limit["dearest"]], [0, 0], color=GUARDED, linewidth=3)
    axes.plot(limit["estimate"], 0, "o", color=GUARDED)
    so_far = limit.get("told")
    if so_far is not None:
        axes.plot(so_far, 0, "D", color="black", fillstyle="none")
    axes.axvline(limit["threshold"], color="black", linestyle="--", linewidth=1.2)
    left = limit.get("slack")
    floor = None not in (left, limit["dearest"]) and left * (limit["threshold"] - limit["dearest"]) < 0.0
    words = f"{plain(limit['name'])} {'≥' if floor else '≤'} {limit['threshold']:g}"
    words += "" if so_far is None else "; ◇ told so far"
    axes.annotate(words, (0.02, 0.97), xycoords="axes fraction", va="top", fontsize=9)
    axes.margins(x=0.12)


def draw_segments(axes: Any, head: tuple[str, str, float], rows: list[dict[str, Any]]) -> None:
    """Draw what was seen of every action in every segment, from there to the worst that is plausible, and the limit."""
    seen = [one for one in rows if one["rate"] is not None]
    segments, actions = (list(dict.fromkeys(one[of] for one in seen)) for of in ("segment", "action"))
    axes.axvline(head[2], color="black", linestyle="--", linewidth=1.2, label=f"limit {head[2]:g}")
    for k, action in enumerate(actions):
        colour = STYLES[k % len(STYLES)][0]
        its, shift = [one for one in seen if one["action"] == action], 0.7 * ((k + 0.5) / len(actions) - 0.5)
        places = [segments.index(one["segment"]) + shift for one in its]
        axes.hlines(places, [one["rate"] for one in its], [one["dearest"] for one in its], color=colour, linewidth=2)
        axes.plot([one["rate"] for one in its], places, "o", color=colour, markersize=4, label=plain(action))
    plain_axes(axes, f"{plain(head[0])} by {plain(head[1])}: seen, to the worst plausible")
    axes.set(yticks=range(len(segments)), yticklabels=[plain(segment) for segment in segments])
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize="small")


def values_of(report: Any) -> dict[str, Any]:
    """Return the plain values of a report, whatever else was given."""
    try:
        told = dict(report if isinstance(report, Mapping) else report.plain())
        limits, actions = [{**limit} for limit in told["limits"]], [{**action} for action in told["actions"]]
        segments = [{**one} for one in told.get("segments", [])]
        named = {"reward_name": str(told.get("reward_name", "reward")), "segments": segments}  # none in files of before
        return {**{name: told[name] for name in SHOWN}, **named, "limits": limits, "actions": actions}
    except Exception:  # whatever the object's own code came to
        raise InvalidProblem(
            f"the report is {shown(report)}; it must be what agent.report() returned, or its plain()"
        ) from None


def title_of(told: Mapping[str, Any]) -> str:
    """Return how recent traffic divides."""
    if told["exploring"] is None:
        return "traffic"
    return ", ".join(f"{name} {told[name]:.0%}" for name in ("exploring", "exploiting", "safe"))
