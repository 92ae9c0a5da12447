"""The desk: what a request meets. It decides on what is known, has the log written, and only then answers.

It learns nothing itself: the learner does, from the log. So a desk has no state of its own, and any number of them may
stand before one store.
"""

import time
from typing import Any

import msgspec

from stagewise.policies.agent.health import OUTCOMES, Health, health_of
from stagewise.policies.agent.told import with_told
from stagewise.problem.checks import shown
from stagewise.service.answers import in_words
from stagewise.service.changes import Changes
from stagewise.service.deciders import Deciders
from stagewise.service.deciding import Known, cause_in
from stagewise.service.errors import UnknownDecision
from stagewise.service.experiment import Experiment
from stagewise.service.figures import figures_of
from stagewise.service.loading import OfflineLogs
from stagewise.service.open_costs import safe_costs
from stagewise.service.outcomes import Outcomes
from stagewise.service.records import DECISION


class Desk(Deciders, Outcomes, Changes, OfflineLogs):
    """Decide, take outcomes and logs, change controls: each durable before it is answered; and tell how all stands."""

    def figures(self, name: str) -> dict[str, Any]:
        """Return what the page shows of an experiment: counted from the log, with what is known and who may decide."""
        ours, known, everywhere = self.experiment(name), self.experiment(name).known, self.everywhere.killed
        killed = everywhere or ours.killed
        tally = self.counting.look(name)
        found = health_of(known.policy, known.state, known.notes)
        health = [one for one in found if one.name != OUTCOMES]  # a desk refuses outcomes before they are in the log
        return figures_of(
            tally,
            self.store.now(),
            mode=ours.mode,
            share=ours.share,
            killed=None if killed is None else killed.sentence,
            killed_everywhere=everywhere is not None,
            version=ours.version,
            snapshot_age_s=self.age(ours, known),
            max_age_s=self.max_age,
            failed=self.learner.failures.get(name),
            doubts=[
                {"name": doubt, "reason": cause.reason, "details": cause.details, "sentence": cause.sentence}
                for doubt, cause in ours.doubts.items()
            ],
            health=Health(with_told(known.policy, health, safe_costs(tally))).plain(),
        )

    def age(self, ours: Experiment, known: Known) -> float:
        """Return for how many seconds what is known has lacked a row of the log; 0: it lacks none."""
        lacking = self.store.events(ours.name, known.seq, 1)
        if not lacking:
            return 0.0
        return min(time.monotonic() - ours.snapshot_at, max(self.store.now() - lacking[0].at, 0) / 1e6)

    def explain(self, name: str, id_: str) -> dict[str, Any]:
        """Return a decision with what was asked, the bounds it was made by, and what came of it."""
        ours = self.experiment(name)
        event = self.store.find(name, DECISION, id_)
        if event is None:
            raise UnknownDecision(f"{shown(id_)} is no decision of {shown(name)}")
        body = msgspec.json.decode(event.body)
        cause = cause_in(body)
        return {
            "decision_id": id_,
            "at": event.at / 1e6,
            "row": event.seq,
            "place": event.place,
            "chain": event.chain.hex(),
            **body,
            "fallback": None if cause is None else cause.sentence,
            "outcome": self.store.answers(name, event.place),
            "words": in_words(ours.problem, event, body),
        }
