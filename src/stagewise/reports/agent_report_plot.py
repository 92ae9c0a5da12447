"""Plot an agent's report, or the values of `report.to_dict()`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.reports.plot_style import BAD, GUARDED, SAFE, STYLES, escape_label, format_axes

MAX_ACTIONS = 20
REPORT_FIELDS = ("recent_exploring_share", "recent_exploiting_share", "recent_safe_share", "reward", "safe_reward")


def plot_report(report: Any) -> Any:
    """Plot a report: traffic by action, rewards, limits, rates by segment, and bounds that age.

    Args:
        report: `agent.report()`, or its `to_dict()`.

    Returns:
        A matplotlib figure.

    Raises:
        InvalidProblem: `report` is something else.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
        >>> agent = sw.Agent(policy)
        >>> _ = agent.decide(sw.Arms(2))
        >>> len(plot_report(agent.report()).axes)
        3
    """
    from matplotlib.figure import Figure

    values = to_values(report)
    groups = list(dict.fromkeys((one["limit"], one["by"], one["threshold"]) for one in values["segments"]))
    drifting = list(dict.fromkeys(one["limit"] for one in values["drifting"]))
    count = 1 + bool(groups) + bool(drifting)
    figure = Figure(figsize=(12.0, 3.6 * count), layout="constrained")
    rows = figure.add_gridspec(count, 1)
    top = rows[0].subgridspec(1, 3)
    draw_traffic(figure.add_subplot(top[0]), values)
    draw_rewards(figure.add_subplot(top[1]), values)
    positions = top[2].subgridspec(max(len(values["limits"]), 1), 1)
    for index, limit in enumerate(values["limits"] or [None]):  # each in its own units
        draw_limit(figure.add_subplot(positions[index]), limit, index == 0)
    if groups:
        bottom = rows[1].subgridspec(1, len(groups))
        for index, head in enumerate(groups):
            its = [one for one in values["segments"] if one["limit"] == head[0]]
            draw_segments(figure.add_subplot(bottom[index]), head, its)
    if drifting:
        bottom = rows[count - 1].subgridspec(1, len(drifting))
        for index, name in enumerate(drifting):
            its = [one for one in values["drifting"] if one["limit"] == name]
            draw_drifting(figure.add_subplot(bottom[index]), name, its)
    return figure


def draw_traffic(axes: Any, values: Mapping[str, Any]) -> None:
    """Draw the share of traffic by action."""
    actions = sorted(values["actions"], key=lambda action: -action["share"])[:MAX_ACTIONS]
    labels = [escape_label(action["name"]) for action in actions]
    positions = range(len(actions))
    axes.barh(
        [p - 0.2 for p in positions], [a["share"] for a in actions], 0.4, color=SAFE, alpha=0.5, label="of all rounds"
    )
    axes.barh([p + 0.2 for p in positions], [a["recent_share"] for a in actions], 0.4, color=GUARDED, label="recently")
    format_axes(axes, format_title(values))
    axes.set(yticks=list(positions), yticklabels=labels, xlim=(0.0, 1.0))
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.invert_yaxis()
    axes.legend(frameon=False)


def draw_rewards(axes: Any, values: Mapping[str, Any]) -> None:
    """Draw the reward per round now, and that of the safe action."""
    labels = {"reward": "now", "safe_reward": "safe action"}
    rows = [(labels[name], values[name]) for name in labels if values[name] is not None]
    for index, (name, one) in enumerate(rows):
        colour = GUARDED if name == "now" else SAFE
        axes.plot([one["low"], one["high"]], [index, index], color=colour, linewidth=3)
        axes.plot(one["estimate"], index, "o", color=colour)
    format_axes(axes, f"{escape_label(values['reward_name'])} of a round, beside the safe action's")
    axes.set(yticks=range(len(rows)), yticklabels=[name for name, _ in rows])
    axes.set_ylim(-0.6, max(len(rows), 1) - 0.4)


def draw_limit(axes: Any, limit: Mapping[str, Any] | None, first: bool) -> None:
    """Draw the cost of a round beside its limit."""
    format_axes(axes, "costs of a round, estimate to upper bound" if first else "")
    axes.set(yticks=[], ylim=(-0.8, 1.0))
    if limit is None:
        return
    axes.plot([limit["estimated_cost"], limit["worst_pessimistic_cost"]], [0, 0], color=GUARDED, linewidth=3)
    axes.plot(limit["estimated_cost"], 0, "o", color=GUARDED)
    observed = limit.get("observed_mean")
    if observed is not None:
        axes.plot(observed, 0, "D", color="black", fillstyle="none")
    axes.axvline(limit["threshold"], color="black", linestyle="--", linewidth=1.2)
    margin = limit.get("margin")
    is_lower = (
        None not in (margin, limit["worst_pessimistic_cost"])
        and margin * (limit["threshold"] - limit["worst_pessimistic_cost"]) < 0.0
    )
    label = f"{escape_label(limit['name'])} {'≥' if is_lower else '≤'} {limit['threshold']:g}"
    label += "" if observed is None else "; ◇ observed mean"
    axes.annotate(label, (0.02, 0.97), xycoords="axes fraction", va="top", fontsize=9)
    axes.margins(x=0.12)


def draw_segments(axes: Any, head: tuple[str, str, float], rows: list[dict[str, Any]]) -> None:
    """Draw the rate of every action in every segment, up to its upper bound, and the limit."""
    known = [one for one in rows if one["rate"] is not None]
    segments, actions = (list(dict.fromkeys(one[field] for one in known)) for field in ("segment", "action"))
    axes.axvline(head[2], color="black", linestyle="--", linewidth=1.2, label=f"limit {head[2]:g}")
    for k, action in enumerate(actions):
        colour = STYLES[k % len(STYLES)][0]
        its, shift = [one for one in known if one["action"] == action], 0.7 * ((k + 0.5) / len(actions) - 0.5)
        positions = [segments.index(one["segment"]) + shift for one in its]
        axes.hlines(
            positions, [one["rate"] for one in its], [one["pessimistic_cost"] for one in its], color=colour, linewidth=2
        )
        axes.plot([one["rate"] for one in its], positions, "o", color=colour, markersize=4, label=escape_label(action))
    format_axes(axes, f"{escape_label(head[0])} by {escape_label(head[1])}: observed, to the upper bound")
    axes.set(yticks=range(len(segments)), yticklabels=[escape_label(segment) for segment in segments])
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize="small")


def draw_drifting(axes: Any, name: str, rows: list[dict[str, Any]]) -> None:
    """Draw for every action its estimate, its bound without age, what age adds, and whether it recovers."""
    for position, one in enumerate(rows):
        colour, young = BAD if one["recovering"] else GUARDED, one["bound"] - one["age_term"]
        if one["estimate"] is not None:
            is_lower = one["bound"] < one["estimate"]
            young = one["bound"] + one["age_term"] if is_lower else young
            axes.plot([one["estimate"], young], [position, position], color=colour, linewidth=2)
            axes.plot(one["estimate"], position, "o", color=colour, markersize=4)
        axes.plot([young, one["bound"]], [position, position], color=colour, linewidth=7, alpha=0.35)
        back = (
            "recovering"
            if one["back_at"] is None
            else f"back about {datetime.fromtimestamp(one['back_at'], UTC):%d %b %Y}"
        )
        if one["recovering"]:
            axes.annotate(back, (one["bound"], position), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.axvline(rows[0]["threshold"], color="black", linestyle="--", linewidth=1.2)
    labels = [one["action"] + (f" in {one['segment']}" if one["segment"] else "") for one in rows]
    format_axes(axes, f"{escape_label(name)}: estimate to bound; thick: what age adds; dashed: the limit")
    axes.set(
        yticks=range(len(rows)), yticklabels=[escape_label(label) for label in labels], ylim=(len(rows) - 0.4, -0.6)
    )
    axes.margins(x=0.18)


def to_values(report: Any) -> dict[str, Any]:
    """Return the values of a report, or reject something else."""
    try:
        values = dict(report if isinstance(report, Mapping) else report.to_dict())
        limits, actions = [{**limit} for limit in values["limits"]], [{**action} for action in values["actions"]]
        segments = [{**one} for one in values.get("segments", [])]
        named = {
            "reward_name": str(values.get("reward_name", "reward")),
            "segments": segments,
            "drifting": [{**one} for one in values.get("drifting", [])],
        }
        return {**{name: values[name] for name in REPORT_FIELDS}, **named, "limits": limits, "actions": actions}
    except Exception:  # the object's own code may raise anything
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "the report is {report}; it must be the result of agent.report(), or of its to_dict()",
            report=safe_repr(report),
        ) from None


def format_title(values: Mapping[str, Any]) -> str:
    """Return the shares of recent traffic."""
    if values["recent_exploring_share"] is None:
        return "traffic"
    names = ("recent_exploring_share", "recent_exploiting_share", "recent_safe_share")
    return ", ".join(f"{name.removeprefix('recent_').removesuffix('_share')} {values[name]:.0%}" for name in names)
