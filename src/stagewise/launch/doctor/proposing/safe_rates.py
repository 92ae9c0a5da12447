"""What the safe action costs at most, read from a log, and limits against it."""

from dataclasses import replace

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks.safe_action import rates_of_safe
from stagewise.launch.doctor.finding import said
from stagewise.launch.doctor.proposing.ends import up
from stagewise.problem.declared import Limit

TWICE, ROOMY = 2.0, 1.25  # what the safe action costs, and may cost: the larger is a limit where none was given
FINEST = 1e-4  # of a range: a limit lies at least so far from its ends


def with_safe(
    chart: Chart, signal: int, limit: Limit, given: float | None, share: float, reasons: dict[str, str]
) -> Limit:
    """Return a limit with the most that the safe action costs, but for some chance, and a number where none was given.

    The interval is OPB's "kl", so it holds whoever chose the actions; in segments the dearest one decides.
    """
    name, rates, span = chart.names[signal], rates_of_safe(chart, signal, share), limit.high - limit.low
    most = max((high for *_, high in rates), default=limit.high)
    safe = limit.low + up((most - limit.low) / span, 3) * span
    mean = max((mean for _, mean, *_ in rates), default=limit.high)
    if given is None:
        _, usual, ends = chart.rate(
            signal, chart.log.actions == chart.safe, share
        )  # all segments: a limit is one number
        room = (max(TWICE * (usual - limit.low), ROOMY * (ends.high - limit.low)) if rates else span) / span
        value = limit.low + min(max(up(room), FINEST), 1.0 - FINEST) * span
        reasons[f"limit.{name}"] = (
            f"PROPOSED, so decide: twice what {chart.log.problem.safe!r} costs, or 5/4 of its bound"
        )
    else:
        value, reasons[f"limit.{name}"] = given, "as given"
    unseen = limit.by is not None and len(rates) < len(chart.divided[limit.by][1])
    if limit.model == "linear" or unseen or not rates or not safe < value:
        why = "it differs by user" if limit.model == "linear" else f"{said(safe)} is the least that can be vouched for"
        why = f"there is a {limit.by!r} of which the log has none" if unseen else why
        reasons[f"safe.{name}"] = f"left out, and so learned first, by playing it: {why}"
        return replace(limit, value=value)
    where = f" in the dearest of {len(rates)} segments; one that comes later may be dearer" if limit.by else ""
    reasons[f"safe.{name}"] = (
        f"seen {said(mean)}{where}; at most this but for a chance of {said(share)}, a share of delta"
    )
    return replace(limit, value=value, safe=safe)
