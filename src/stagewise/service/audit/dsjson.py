"""A decision as a line of dsjson, which Vowpal Wabbit reads (`vw --dsjson --cb_explore_adf`).

Actions are numbered from 1 within those that were on offer, the one that was served first; costs are −reward. What was
not shown, and what is not known yet, is there with `_skipLearn`.
"""

from datetime import UTC, datetime
from typing import Any

from stagewise.service.audit.reading import was_shown
from stagewise.service.records import Event, canonical
from stagewise.service.versions import Version


def line_of(event: Event, said: dict[str, Any], answers: dict[str, float], version: Version, now: int) -> bytes:
    """Return a decision as a line."""
    offered = on_offer(said, version)
    place = offered.index(said["action"])
    order = [place, *(i for i in range(len(offered)) if i != place)]
    chances = [said["probabilities"][offered[i]] for i in order]
    reward = reward_of(event, answers, version, now)
    line: dict[str, Any] = {
        "_label_cost": 0.0 if reward is None else -reward + 0.0,
        "_label_probability": chances[0],
        "_label_Action": place + 1,
        "_labelIndex": place,
        "o": [] if reward is None else [{"EventId": event.key, "v": reward, "ActionTaken": False}],
        "Timestamp": f"{datetime.fromtimestamp(event.at // 10**6, UTC):%Y-%m-%dT%H:%M:%S}.{event.at % 10**6:06d}0Z",
        "Version": "1",
        "EventId": event.key,
        "a": [i + 1 for i in order],
        "c": {
            "User": features(said["asked"]["context"]),
            "_multi": [{"_tag": name, "Action": {"name": name}} for name in offered],
        },
        "p": chances,
        "VWState": {"m": f"{said['problem']}/{said['state']}"},
    }
    if reward is None or not was_shown(said, answers):
        line["_skipLearn"] = True
    return canonical(line)


def on_offer(said: dict[str, Any], version: Version) -> list[str]:
    """Return the actions that were on offer, in the order of the problem."""
    only = said["asked"].get("only")
    names, safe = version.problem.actions, version.problem.safe
    return [name for name in names if name == safe or (name not in version.retired and (only is None or name in only))]


def reward_of(event: Event, answers: dict[str, float], version: Version, now: int) -> float | None:
    """Return the reward; where its window closed without one, what counts then; None: nobody knows."""
    reward = version.problem.reward
    if reward.name in answers:
        return answers[reward.name]
    window = version.problem.windows.get(reward.name)
    if window is None or window.drops or now - event.at < window.seconds * 1e6:
        return None
    return float(window.missing)


def features(context: dict[str, Any]) -> dict[str, Any]:
    """Return numbers as they are, truth values as 1 and 0, text as text."""
    return {name: float(value) if isinstance(value, bool) else value for name, value in context.items()}
