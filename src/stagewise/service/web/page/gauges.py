"""Where marks stand on the small scales of the page, in percent of their width."""

from collections.abc import Mapping
from typing import Any

from stagewise.service.web.page.telling import amount, count, gained, gained_ends

KEYS = ("seen", "low", "high", "threshold", "dearest", "would")
ROOM = 2.0  # a limit's scale shows so many times the room that it leaves


def placed(value: float | None, low: float, high: float) -> float | None:
    """Return where a value stands between two ends; what is beyond stands at the end."""
    if value is None:
        return None
    return round(100.0 * min(max((value - low) / (high - low), 0.0), 1.0), 3)


def stretch(low: float, high: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Return where a band begins and how wide it is; it stays visible."""
    first, last = placed(low, *ends) or 0.0, placed(high, *ends) or 0.0
    return first, round(max(last - first, 0.5), 3)


def limit_gauge(name: str, limit: Mapping[str, Any]) -> dict[str, Any]:
    """Return a limit as its gauge shows it: the limit is in the middle of the scale."""
    least, most, threshold = limit["least"], limit["most"], limit["threshold"]
    if limit["at_most"]:
        ends = (least, min(most, least + ROOM * (threshold - least)))
        allowed = (0.0, placed(threshold, *ends) or 0.0)
    else:
        ends = (max(least, most - ROOM * (most - threshold)), most)
        allowed = (placed(threshold, *ends) or 0.0, 100.0)
    allowed = (allowed[0], round(allowed[1] - allowed[0], 3))
    words = {f"{key}_words": amount(limit[key], least, most) for key in KEYS}
    side = "at most" if limit["at_most"] else "at least"
    spoken = f"{name}: limit {side} {words['threshold_words']}, pessimistic {words['dearest_words']}"
    if limit["seen"] is not None:
        spoken += f", seen {words['seen_words']}, band {words['low_words']} to {words['high_words']}"
    return {
        **limit,
        **words,
        "name": name,
        "spoken": spoken,
        "allowed": allowed,
        "band": stretch(limit["low"], limit["high"], ends) if limit["seen"] is not None else None,
        "seen_at": placed(limit["seen"], *ends),
        "threshold_at": placed(threshold, *ends),
        "dearest_at": placed(limit["dearest"], *ends),
    }


def reward_gauges(reward: Mapping[str, Any], safe: str) -> dict[str, Any]:
    """Return the reward of what is served and of the safe action, on one scale."""
    least, most = reward["least"], reward["most"]
    known = [reward[key] for key in ("now", "safe") if reward[key]["mean"] is not None]
    low, high = min((one["low"] for one in known), default=least), max((one["high"] for one in known), default=most)
    margin = 0.04 * (high - low) or 0.5
    ends = (max(low - margin, least - margin), high + margin)
    rows = []
    for key, label in (("now", "what it serves"), ("safe", f"“{safe}”")):
        one = reward[key]
        words = {end: amount(one[end], least, most) for end in ("mean", "low", "high")}
        band = stretch(one["low"], one["high"], ends)
        rows.append(
            {
                **words,
                "count": one["count"],
                "label": label,
                "kind": key,
                "at": placed(one["mean"], *ends),
                "band": band,
            }
        )
    gain = reward["gain"] or {"mean": None, "low": None, "high": None}
    words = {"gain": gained(gain["mean"], least, most), "ends": gained_ends(gain["low"], gain["high"], least, most)}
    return {"name": reward["name"], "rows": rows, **words}


def action_cells(action: Mapping[str, Any], spans: Mapping[str, tuple[float, float]]) -> list[dict[str, Any]]:
    """Return what was seen of an action, signal by signal, in words."""
    cells = []
    for signal, seen in action["seen"].items():
        words = {end: amount(seen[end], *spans[signal]) for end in ("mean", "low", "high")}
        cells.append({**words, "count": seen["count"]})
    return cells


def shares(counts: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Return counts with the width of their bars.

    >>> shares({"shadow": 30, "killed": 10})
    [('shadow', 30, 75.0), ('killed', 10, 25.0)]
    """
    total = max(sum(counts.values()), 1)
    return [(name, n, round(100.0 * n / total, 2)) for name, n in counts.items()]


def in_a_cell(value: Any) -> str:
    """Return anything of an explanation in one cell."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_a_cell(one)}" for key, one in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(in_a_cell(one) for one in value) or "–"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return count(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
