"""Whether the safe action is safe, and whether what is declared of it can be true."""

from stagewise.launch.doctor.chart import Chart, threshold_of
from stagewise.launch.doctor.finding import Finding, gravest, said

MOST_CELLS = 200  # segments whose safe action is looked at by itself, the largest


def rates_of_safe(chart: Chart, signal: int, alpha: float) -> list[tuple[str, float, float, float]]:
    """Return where, what the safe action's signal averages, and between what its mean lies but for alpha."""
    by = chart.log.problem.choices[chart.names[signal]].by
    doing = chart.log.actions == chart.safe
    if by is None:
        count, mean, ends = chart.rate(signal, doing, alpha)
        return [("", mean, ends.low, ends.high)] if count else []
    groups, names = chart.divided[by]
    told = []
    for place, name in list(enumerate(names))[:MOST_CELLS]:
        count, mean, ends = chart.rate(signal, doing & (groups == place), alpha / min(len(names), MOST_CELLS))
        told += [(f" in {by} {name!r}", mean, ends.low, ends.high)] if count else []
    return told


def in_all_and_apart(chart: Chart, signal: int, alpha: float) -> list[tuple[str, float, float, float]]:
    """Return the safe action's rates by segment, and of all users: what is over a limit on average is so somewhere."""
    if chart.log.problem.choices[chart.names[signal]].by is None:
        return rates_of_safe(chart, signal, alpha)
    count, mean, ends = chart.rate(signal, chart.log.actions == chart.safe, 0.5 * alpha)
    everyone = [(" on average over all segments", mean, ends.low, ends.high)] if count else []
    return [*everyone, *rates_of_safe(chart, signal, 0.5 * alpha)]


def check(chart: Chart, alpha: float) -> Finding:
    """Find a safe action whose mean cost is above its limit, surely."""
    problem, found = chart.log.problem, []
    for signal, (name, limit) in enumerate(problem.limits.items(), start=1):
        value, below = threshold_of(limit)
        for where, mean, low, high in in_all_and_apart(chart, signal, alpha / len(problem.limits)):
            if (high < value) if below else (low > value):
                words = (
                    f"{name!r} of the safe action {problem.safe!r}{where} averages {said(mean)}, and surely "
                    f"{'at most ' + said(high) if below else 'at least ' + said(low)}, where its limit is {said(value)}"
                )
                remedy = "check the limit's units, or name another action as safe: from this one nothing can start"
                found.append(Finding("safe action", "contradicts", words, remedy))
    fine = f"nothing shows that {problem.safe!r} is over a limit"
    return gravest("safe action", found, fine)


def check_declared(chart: Chart, alpha: float) -> Finding:
    """Find a declared mean of the safe action that the log contradicts."""
    problem, found = chart.log.problem, []
    for signal, (name, declared) in enumerate(problem.signals.items()):
        if declared.safe is None:
            continue
        wanted = name == problem.reward.name
        below = wanted or threshold_of(problem.limits[name])[1]  # the declared mean is the least
        for where, mean, low, high in rates_of_safe(chart, signal, alpha / len(problem.signals)):
            if (high < declared.safe) if below else (low > declared.safe):
                words = (
                    f"{name!r} of {problem.safe!r}{where} is declared to be at {'least' if below else 'most'} "
                    f"{said(declared.safe)}, and averages {said(mean)}, surely {said(low)} to {said(high)}"
                )
                end = low if below else high
                found.append(
                    Finding("declared safe", "contradicts", words, f"declare safe = {said(end)}, or leave it out")
                )
    return gravest("declared safe", found, "what is declared of the safe action agrees with the log")
