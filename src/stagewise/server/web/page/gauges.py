"""Positions of marks on the page's gauges, in percent of the width."""

from collections.abc import Mapping
from typing import Any

from stagewise.server.web.page.value_format import amount, count, format_gain, format_gain_interval

AMOUNT_KEYS = ("observed_mean", "low", "high", "threshold", "pessimistic_cost", "shadow")
SCALE_FACTOR = 2.0  # length of a limit's scale, relative to the allowed range


def to_percent(value: float | None, low: float, high: float) -> float | None:
    """Return the position of a value between two ends, clipped to them."""
    if value is None:
        return None
    return round(100.0 * min(max((value - low) / (high - low), 0.0), 1.0), 3)


def compute_band(low: float, high: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Return the position and the width of a band, at least half a percent wide."""
    first, last = to_percent(low, *ends) or 0.0, to_percent(high, *ends) or 0.0
    return first, round(max(last - first, 0.5), 3)


def build_limit_gauge(name: str, limit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a limit's gauge; the limit is in the middle of the scale."""
    least, most, threshold = limit["least"], limit["most"], limit["threshold"]
    if limit["at_most"]:
        ends = (least, min(most, least + SCALE_FACTOR * (threshold - least)))
        allowed = (0.0, to_percent(threshold, *ends) or 0.0)
    else:
        ends = (max(least, most - SCALE_FACTOR * (most - threshold)), most)
        allowed = (to_percent(threshold, *ends) or 0.0, 100.0)
    allowed = (allowed[0], round(allowed[1] - allowed[0], 3))
    texts = {f"{key}_text": amount(limit[key], least, most) for key in AMOUNT_KEYS}
    side = "at most" if limit["at_most"] else "at least"
    label = f"{name}: limit {side} {texts['threshold_text']}, pessimistic {texts['pessimistic_cost_text']}"
    if limit["observed_mean"] is not None:
        label += f", observed {texts['observed_mean_text']}, interval {texts['low_text']} to {texts['high_text']}"
    return {
        **limit,
        **texts,
        "name": name,
        "label": label,
        "allowed": allowed,
        "band": compute_band(limit["low"], limit["high"], ends) if limit["observed_mean"] is not None else None,
        "observed_mean_at": to_percent(limit["observed_mean"], *ends),
        "threshold_at": to_percent(threshold, *ends),
        "pessimistic_cost_at": to_percent(limit["pessimistic_cost"], *ends),
    }


def build_reward_gauges(reward: Mapping[str, Any], safe: str) -> dict[str, Any]:
    """Return the gauges of the served and the safe action's reward, on one scale."""
    least, most = reward["least"], reward["most"]
    intervals = [reward[key] for key in ("now", "safe") if reward[key]["mean"] is not None]
    low = min((interval["low"] for interval in intervals), default=least)
    high = max((interval["high"] for interval in intervals), default=most)
    margin = 0.04 * (high - low) or 0.5
    ends = (max(low - margin, least - margin), high + margin)
    rows = []
    for key, label in (("now", "served"), ("safe", f"“{safe}”")):
        interval = reward[key]
        rows.append(
            {
                **{end: amount(interval[end], least, most) for end in ("mean", "low", "high")},
                "count": interval["count"],
                "label": label,
                "kind": key,
                "at": to_percent(interval["mean"], *ends),
                "band": compute_band(interval["low"], interval["high"], ends),
            }
        )
    gain = reward["gain"] or {"mean": None, "low": None, "high": None}
    return {
        "name": reward["name"],
        "rows": rows,
        "gain": format_gain(gain["mean"], least, most),
        "interval": format_gain_interval(gain["low"], gain["high"], least, most),
    }


def build_action_cells(action: Mapping[str, Any], ranges: Mapping[str, tuple[float, float]]) -> list[dict[str, Any]]:
    """Return the observed means of an action by signal, as text."""
    cells = []
    for signal, interval in action["observed_mean"].items():
        texts = {end: amount(interval[end], *ranges[signal]) for end in ("mean", "low", "high")}
        cells.append({**texts, "count": interval["count"]})
    return cells


def compute_bar_widths(counts: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Return counts with the widths of their bars in percent.

    >>> compute_bar_widths({"shadow": 30, "killed": 10})
    [('shadow', 30, 75.0), ('killed', 10, 25.0)]
    """
    total = max(sum(counts.values()), 1)
    return [(name, n, round(100.0 * n / total, 2)) for name, n in counts.items()]


def format_cell(value: Any) -> str:
    """Return a value of an explanation as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_cell(item)}" for key, item in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(format_cell(item) for item in value) or "–"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return count(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
