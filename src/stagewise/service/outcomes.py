"""Outcomes that a desk is told: each signal once, durable before it is acknowledged."""

import asyncio
from collections.abc import Sequence

from stagewise.service.answers import told_of
from stagewise.service.errors import Conflict, UnknownDecision
from stagewise.service.experiment import Experiment
from stagewise.service.messages import Outcome, Refusal, Told
from stagewise.service.reading import Reading
from stagewise.service.records import CONFLICT, OUTCOME, SAME, UNKNOWN, Ask, Settled, canonical, digest
from stagewise.service.told import late_in, values_of


class Outcomes(Reading):
    """Take outcomes."""

    async def learn(self, name: str, outcome: Outcome) -> Told:
        """Take in signals of a decision, each once, whenever they come."""
        ours = self.experiment(name)
        told = self.told(ours, outcome, await self.writer.append(self.telling(ours, outcome)))
        self.learner.wake()
        return told

    def telling(self, ours: Experiment, outcome: Outcome) -> Ask:
        """Return the row that an outcome asks for. Raises InvalidOutcome."""
        values = values_of(ours.problem, outcome.values)
        body = canonical({"of": outcome.decision_id, "values": values})
        own = digest(canonical([outcome.decision_id, values])) if outcome.outcome_id is not None else b""
        return Ask(
            ours.name, OUTCOME, outcome.outcome_id or "", body, own, of=outcome.decision_id, values=values
        )  # fmt: skip

    def told(self, ours: Experiment, outcome: Outcome, settled: Settled) -> Told:
        """Return what became of an outcome, or raise why it was refused."""
        if settled.verdict == UNKNOWN:
            self.counts.outcomes[ours.name, "unknown"] += 1
            raise UnknownDecision(settled.words)
        if settled.verdict == CONFLICT:
            self.counts.outcomes[ours.name, "conflict"] += 1
            raise Conflict(settled.words)
        late = late_in(ours.problem, settled)
        kind = "same" if settled.verdict == SAME else "late" if late else "taken"
        self.counts.outcomes[ours.name, kind] += 1
        return Told(outcome.decision_id, list(settled.taken), list(settled.known), late)

    async def learn_all(self, name: str, outcomes: Sequence[Outcome]) -> list[Told | Refusal]:
        """Take in several outcomes, each by itself."""
        self.experiment(name)
        told = await asyncio.gather(*(self.learn(name, one) for one in outcomes), return_exceptions=True)
        return [told_of(one, outcomes[i].decision_id) for i, one in enumerate(told)]
