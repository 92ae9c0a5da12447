"""What was declared, held against the data: a verdict and one sentence each."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.layout import Part
from stagewise.kernels.promise import ALARM
from stagewise.models.answers import Evidence, answers_of
from stagewise.models.part import parts_in
from stagewise.policies.agent.drift import tested
from stagewise.policies.agent.guard import TERMS, acknowledged
from stagewise.policies.agent.notes import Notes, Track
from stagewise.policies.compiled import CompiledPolicy
from stagewise.policies.contradictions import contradicted, noise_contradicted, safe_cost_contradicted
from stagewise.policies.learning import Learning
from stagewise.policies.policy import State
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.words import average, several
from stagewise.records.html import html_table, page_of
from stagewise.records.reason import Cause, Contradiction
from stagewise.records.reason import drift as drift_sentence

FINE, UNKNOWN, DOUBTFUL, CONTRADICTED, ACKNOWLEDGED = "fine", "unknown", "doubtful", "contradicted", "acknowledged"
OUTCOMES = "outcomes"  # the finding that counts what was refused


class Finding(NamedTuple):
    """One declared fact beside the data."""

    name: str  # as `Agent.acknowledge` takes it
    verdict: str  # fine, unknown, doubtful (no limit rests on it), contradicted, or acknowledged
    sentence: str
    cause: Cause | None = None  # of what is contradicted

    def stops(self, policy: Any) -> bool:
        """Say whether this is, or will be, the fallback of decisions."""
        return self.verdict == CONTRADICTED and bool(getattr(policy, "watch", False))


class Health(tuple[Finding, ...]):
    """All findings, as a table.

    >>> print(Health([Finding("noise of cost", "fine", "declared 0.1, and the residuals need 0.04 or more")]))
    noise of cost  fine  declared 0.1, and the residuals need 0.04 or more
    """

    @property
    def ok(self) -> bool:
        """Whether nothing contradicts safety, or whatever does was acknowledged."""
        return all(finding.verdict != CONTRADICTED for finding in self)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = next((finding for finding in self if finding.name == key), None)
        if found is None:
            raise KeyError(f"{key!r} is none of {', '.join(finding.name for finding in self)}")
        return found

    def plain(self) -> list[dict[str, str]]:
        """Return the findings as JSON holds them."""
        return [{"name": one.name, "verdict": one.verdict, "sentence": one.sentence} for one in self]

    def __str__(self) -> str:
        wide = [max((len(str(finding[i])) for finding in self), default=0) for i in (0, 1)]
        return "\n".join(f"{one.name:<{wide[0]}}  {one.verdict:<{wide[1]}}  {one.sentence}" for one in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the findings as a notebook shows them."""
        return page_of(html_table(["test", "verdict", "finding"], [one[:3] for one in self], texts=3))


def health_of(policy: Any, state: State, notes: Notes) -> Health:
    """Return the findings about a policy's settings and memory."""
    found: list[Finding] = []
    if getattr(policy, "has_parts", False) and policy.thresholds.names:
        settings = policy.settings.copy()
        settings[ALARM] = math.log(1.0 / FALSE_ALARMS)  # also where the watch is off: looking stops nobody
        found += declared(policy, settings, state.memory)
        found += limits(policy, settings)
        found += drift(policy, state.memory, notes)
    known = {finding.name for finding in found}
    for name, cause in notes.doubts.items():  # once in doubt, in doubt until a person looks
        verdict = ACKNOWLEDGED if name in notes.accepted else CONTRADICTED
        note = f" (acknowledged: {notes.accepted[name]})" if notes.accepted.get(name) else ""
        told = Finding(name, verdict, cause.sentence + note, cause)
        found = [told if finding.name == name else finding for finding in found] + [told] * (name not in known)
    found.append(ranged(policy, notes))
    return Health(found)


def declared(policy: CompiledPolicy, settings: Floats, memory: Floats) -> Iterator[Finding]:
    """Yield what is to be said of the declared noise and of the safe action's declared values."""
    layout, names = policy.layout, (policy.reward_name, *policy.thresholds.names)
    for part in parts_in(layout, memory):
        for signal in range(part.signals):
            answers, name = answers_of(part), names[part.first + signal]
            told = answers.evidence(part, layout, settings, memory, signal)
            wrong = CONTRADICTED if part.first + signal else DOUBTFUL
            if answers.of_today:
                yield declared_of_today(policy, told, part.first)
            if answers.tests_noise(part):
                yield noise(policy, part.first + signal - 1, name, told)
            if answers.anchors and part.anchored == 1:
                yield safe_value(policy, layout, settings, memory, part, signal, told, wrong)


def declared_of_today(policy: Any, told: Evidence, signal: int) -> Finding:
    """Return what was seen of the safe one of actions in a context beside what was declared of it, for every user."""
    limits, (low, length) = policy.presented, policy.reward_span
    name = f"safe {policy.reward_name}" if signal == 0 else f"safe cost of {limits.names[signal - 1]}"
    least = policy.safe_action.reward
    safe = float(limits.told[signal - 1]) if signal else math.nan if least is None else low + length * least
    seen = average(told.safe_count, policy.in_words(signal, told.safe_mean))
    if math.isnan(safe) or (signal == 0 and safe == low):
        return Finding(name, UNKNOWN, "nothing was declared" + (f", and {seen}" if told.safe_count else ""))
    side = "at least" if signal == 0 or limits.signs[signal - 1] < 0.0 else "at most"
    if not told.safe_count:
        return Finding(name, UNKNOWN, f"declared {side} {safe:g}, and no outcome was seen of the safe action yet")
    mean = float(policy.in_words(signal, told.safe_mean))
    beyond = mean < safe if side == "at least" else mean > safe
    words = f"declared {side} {safe:g}, and {seen}" + (", which may still be chance" if beyond else "")
    return Finding(name, FINE, f"{words}; should it be contradicted for a user, decisions say so")


def noise(policy: Any, j: int, name: str, told: Evidence) -> Finding:
    """Return what the residuals say of the declared noise; −1: of the reward's, on which no limit rests."""
    if not told.outcomes:
        return Finding(f"noise of {name}", UNKNOWN, f"declared {told.noise:g}, and nothing was seen yet")
    words = f"declared {told.noise:g}, and the residuals of {several(told.outcomes)} need {told.least:.3g} or more"
    if not told.least > told.noise:
        return Finding(f"noise of {name}", FINE, words)
    if j < 0:
        return Finding(f"noise of {name}", DOUBTFUL, words)
    return Finding(f"noise of {name}", CONTRADICTED, words, noise_contradicted(policy.presented, j, told))


def safe_value(
    policy: Any, layout: Ints, settings: Floats, memory: Floats, part: Part, signal: int, told: Evidence, wrong: str
) -> Finding:
    """Return what was seen at the safe action beside what was declared of it."""
    j = part.first + signal - 1
    name, sign = ("reward", 1.0) if j < 0 else (policy.thresholds.names[j], float(policy.thresholds.signs[j]))
    known = policy.safe_action.reward if j < 0 else policy.thresholds.safe[j]
    known, title = 0.0 if known is None else float(known), f"safe {'cost of ' if j >= 0 else ''}{name}"
    if not told.safe_count:
        return Finding(title, UNKNOWN, f"declared {known:g}, and no outcome was seen at the safe action yet")
    wrongly = answers_of(part).strays(part, layout, settings, memory, signal, told, sign * known)
    said = "which it does not explain" if wrongly else "which is no contradiction"
    words = f"declared {known:g}, and {average(told.safe_count, f'{sign * told.safe_mean:.3g}', ' seen there')}"
    cause = safe_cost_contradicted(policy.presented, j, known, told) if wrongly and j >= 0 else None
    return Finding(title, wrong if wrongly else FINE, f"{words}, {said}", cause)


def limits(policy: CompiledPolicy, settings: Floats) -> Iterator[Finding]:
    """Yield whether each limit can bind at all."""
    ceilings = TERMS(policy.layout, settings).ceilings
    shown = policy.presented
    rows = zip(shown.names, shown.signs, shown.values, policy.thresholds.values, ceilings, strict=True)
    for j, (name, sign, value, inner, ceiling) in enumerate(rows):
        title, side = f"limit of {name}", "at most" if sign > 0 else "at least"
        if math.isinf(ceiling):
            yield Finding(title, UNKNOWN, f"{value:g}, and no bound on mean costs was declared (cost_bound)")
            continue
        verdict = FINE if sign * inner < ceiling else CONTRADICTED
        said = "so it can bind" if verdict == FINE else "so it can never bind"
        bound, cause = shown.in_unit(j, ceiling), None
        if verdict == CONTRADICTED:
            cause = contradicted(Contradiction.LIMIT_NEVER_BINDS, shown, j, threshold=value, bound=bound)
        yield Finding(title, verdict, f"{value:g}, and means are taken to be {side} {bound:g}, {said}", cause)


def drift(policy: CompiledPolicy, memory: Floats, notes: Notes) -> Iterator[Finding]:
    """Yield whether means are today what they were earlier, as the last look found: decisions go by the same."""
    for name, signal, _, part in sorted(tested(policy, memory), key=lambda one: one[1]):
        title, track = f"drift of {name}", notes.tracks.get(name, Track())
        count = answers_of(part).count(part, policy.settings, memory)
        if count is None:
            yield Finding(
                title, UNKNOWN, "the model of this signal keeps no sums to hold its mean against earlier ones by"
            )
        elif track.moved is not None:
            verdict, words = CONTRADICTED if signal else DOUBTFUL, drift_sentence(track.moved.details)
            yield Finding(title, verdict, words, track.moved if signal else None)
        elif track.compared is None or not track.compared[1]:
            yield Finding(title, UNKNOWN, f"too little was seen to tell earlier from later: {several(count)}")
        else:
            early, late = track.compared
            words = f"the first {several(early)} and the {late:,.0f} after them contradict no one mean"
            yield Finding(title, FINE, words)


def ranged(policy: Any, notes: Notes) -> Finding:
    """Return how many outcomes were refused: outside the declared range, or no number at all."""
    name, count = OUTCOMES, int(np.sum(list(notes.plays.values())))
    rule = "they are finite numbers"
    if getattr(policy, "bounded", False):
        rule = "they lie in [0, 1]" if policy.names is None else "they lie in the ranges that the problem declares"
    if not notes.refused:
        return Finding(name, FINE if count else UNKNOWN, f"declared is that {rule}, and none was refused")
    words = f"{several(notes.refused)} {'was' if notes.refused == 1 else 'were'} refused, and declared is that {rule}"
    return Finding(name, DOUBTFUL, f"{words}; where one of them was real, the rest is no fair sample")


def acknowledge(policy: Learning, state: State, notes: Notes, name: Any, note: Any) -> None:
    """Let go on what contradicts safety, also where no decision has met it yet."""
    found = {one.name: one for one in health_of(policy, state, notes) if one.stops(policy)}
    cause = found[name].cause if isinstance(name, str) and name in found else None
    if cause is not None:
        notes.doubts.setdefault(name, cause)
    acknowledged(policy, state.memory, notes, name, note)
