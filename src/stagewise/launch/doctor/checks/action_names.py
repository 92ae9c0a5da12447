"""Check `actions`: every logged action is in the problem."""

from collections import Counter

from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find rows whose action is missing or not in the problem."""
    log, actions = profile.log, list(profile.log.problem.actions)
    unknown = ~profile.known
    count = int(unknown.sum())
    if not count:
        return Finding.of(FindingCode.ACTIONS_KNOWN, rows=log.rows, actions=actions)
    counts = Counter(text for text in profile.action_texts[unknown].tolist() if text is not None)
    if not counts:
        return Finding.of(FindingCode.ACTION_MISSING, count=count, rows=log.rows)
    name, name_count = counts.most_common(1)[0]
    return Finding.of(
        FindingCode.ACTION_UNKNOWN, count=count, rows=log.rows, name=name, name_count=name_count, actions=actions
    )
