"""An agent's report as a picture, made from its plain values: a file of them is as good as the agent."""

from collections.abc import Mapping
from typing import Any

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.picture import BLUE, plain

GREY, ORANGE, MOST = "#999999", "#E69F00", 20
SHOWN = ("exploring", "exploiting", "safe", "reward", "safe_reward")


def draw_report(report: Any) -> Any:
    """Return a matplotlib figure of `agent.report()`, or of its `plain()`: traffic, rewards, limits.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)
    >>> agent = sw.Agent(policy)
    >>> _ = agent.decide(sw.Arms(2))
    >>> len(draw_report(agent.report()).axes)
    3
    """
    from matplotlib.figure import Figure

    told = values_of(report)
    figure = Figure(figsize=(12.0, 3.6), layout="constrained")
    traffic, reward, limits = figure.subplots(1, 3)
    actions = sorted(told["actions"], key=lambda action: -action["share"])[:MOST]
    labels = [plain(action["name"]) for action in actions]
    places = range(len(actions))
    traffic.barh([p - 0.2 for p in places], [a["share"] for a in actions], 0.4, color=GREY, label="of all rounds")
    traffic.barh([p + 0.2 for p in places], [a["recent"] for a in actions], 0.4, color=BLUE, label="recently")
    traffic.set(title=title_of(told), yticks=list(places), yticklabels=labels, xlim=(0.0, 1.0))
    traffic.invert_yaxis()
    traffic.legend(frameon=False)
    rows = [(name, told[name]) for name in ("reward", "safe_reward") if told[name] is not None]
    for place, (_, one) in enumerate(rows):
        reward.plot([one["low"], one["high"]], [place, place], color=BLUE, linewidth=3)
        reward.plot(one["estimate"], place, "o", color=BLUE)
    words = {"reward": "now", "safe_reward": "safe action"}
    reward.set(
        title=f"{plain(told['reward_name'])} of a round",
        yticks=range(len(rows)),
        yticklabels=[words[name] for name, _ in rows],
    )
    reward.set_ylim(-0.6, max(len(rows), 1) - 0.4)
    for place, limit in enumerate(told["limits"]):
        limits.plot([limit["estimate"], limit["dearest"]], [place, place], color=BLUE, linewidth=3)
        limits.plot(limit["threshold"], place, "|", color=ORANGE, markersize=24, markeredgewidth=2)
    names = [plain(limit["name"]) for limit in told["limits"]]
    limits.set(title="cost of a round, expected to worst; its limit", yticks=range(len(names)), yticklabels=names)
    limits.set_ylim(-0.6, max(len(names), 1) - 0.4)
    return figure


def values_of(report: Any) -> dict[str, Any]:
    """Return the plain values of a report, whatever else was given."""
    try:
        told = dict(report if isinstance(report, Mapping) else report.plain())
        limits, actions = [{**limit} for limit in told["limits"]], [{**action} for action in told["actions"]]
        named = {"reward_name": str(told.get("reward_name", "reward"))}  # a file of before has none
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
