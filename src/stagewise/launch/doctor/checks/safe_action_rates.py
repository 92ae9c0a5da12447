"""Checks `safe_action` and `declared_safe`: the safe action keeps every limit, and its declared means agree."""

from typing import NamedTuple

from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile, get_threshold

MAX_SEGMENTS = 200  # the first segments in which the safe action is tested


class SafeRate(NamedTuple):
    """The mean of a signal of the safe action, with its interval, in one segment or for all users."""

    segment: str | None
    mean: float
    low: float
    high: float
    all_segments: bool = False


def estimate_safe_rates(profile: LogProfile, signal: int, alpha: float) -> list[SafeRate]:
    """Return the means of the safe action's signal by segment; all intervals hold with probability 1 − alpha."""
    by = profile.log.problem.choices[profile.names[signal]].by
    is_safe = profile.log.actions == profile.safe
    if by is None:
        count, mean, interval = profile.rate(signal, is_safe, alpha)
        return [SafeRate(None, mean, interval.low, interval.high)] if count else []
    groups, names = profile.segment_codes[by]
    rates = []
    for index, name in list(enumerate(names))[:MAX_SEGMENTS]:
        count, mean, interval = profile.rate(signal, is_safe & (groups == index), alpha / min(len(names), MAX_SEGMENTS))
        rates += [SafeRate(name, mean, interval.low, interval.high)] if count else []
    return rates


def estimate_all_safe_rates(profile: LogProfile, signal: int, alpha: float) -> list[SafeRate]:
    """Return the safe action's means by segment and for all users: a mean over the limit is over it in some segment."""
    if profile.log.problem.choices[profile.names[signal]].by is None:
        return estimate_safe_rates(profile, signal, alpha)
    count, mean, interval = profile.rate(signal, profile.log.actions == profile.safe, 0.5 * alpha)
    overall = [SafeRate(None, mean, interval.low, interval.high, all_segments=True)] if count else []
    return [*overall, *estimate_safe_rates(profile, signal, 0.5 * alpha)]


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find a safe action whose mean cost is certainly over its limit."""
    problem, findings = profile.log.problem, []
    for signal, (name, limit) in enumerate(problem.limits.items(), start=1):
        threshold, at_least = get_threshold(limit)
        for rate in estimate_all_safe_rates(profile, signal, alpha / len(problem.limits)):
            if (rate.high < threshold) if at_least else (rate.low > threshold):
                findings.append(
                    Finding.of(
                        FindingCode.SAFE_ACTION_OVER_LIMIT,
                        name=name,
                        action=problem.safe,
                        column=problem.choices[name].by,
                        segment=rate.segment,
                        all_segments=rate.all_segments,
                        mean=rate.mean,
                        bound=rate.high if at_least else rate.low,
                        limit=threshold,
                        at_least=at_least,
                    )
                )
    return select_most_severe(findings, Finding.of(FindingCode.SAFE_ACTION_NOT_OVER_LIMIT, action=problem.safe))


def check_declared(profile: LogProfile, alpha: float) -> Finding:
    """Find a declared mean of the safe action that the log contradicts."""
    problem, findings = profile.log.problem, []
    for signal, (name, declared) in enumerate(problem.signals.items()):
        if declared.safe is None:
            continue
        at_least = name == problem.reward.name or get_threshold(problem.limits[name])[1]
        for rate in estimate_safe_rates(profile, signal, alpha / len(problem.signals)):
            if (rate.high < declared.safe) if at_least else (rate.low > declared.safe):
                findings.append(
                    Finding.of(
                        FindingCode.SAFE_MEAN_CONTRADICTED,
                        name=name,
                        action=problem.safe,
                        column=problem.choices[name].by,
                        segment=rate.segment,
                        at_least=at_least,
                        declared=declared.safe,
                        mean=rate.mean,
                        low=rate.low,
                        high=rate.high,
                        bound=rate.low if at_least else rate.high,
                    )
                )
    return select_most_severe(findings, Finding.of(FindingCode.SAFE_MEANS_AGREE))
