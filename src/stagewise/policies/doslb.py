"""DOSLB: optimistic in the reward and in the costs, without coming back. It breaks limits."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from stagewise.kernels.loop.round import MIXTURE, Form
from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.mixtures import DARING, WRITTEN_IN, decision_from
from stagewise.policies.policy import State
from stagewise.policies.rays import own
from stagewise.policies.settings import Optimism
from stagewise.problem.action_set import ActionSet
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

MIXTURES = Form(ridge=1, rule=MIXTURE)


@dataclass(frozen=True, kw_only=True, eq=False)
class DOSLB(LCLUCB):
    """The doubly optimistic learner (Chen, Gangrade, Saligrama 2022). **It breaks its limits**: for comparison only.

    On rays it is `ROFUL`, and on a finite set the directional `OPLB`, without the last step that makes those safe:
    where a cost may still be within its threshold it is taken to be. By its authors, what it goes over its limits by
    adds up to the order of √T; it may do so in every single round (docs/explanation/comparison.md). Regret is small or
    negative: what it gains there is the price of safety.

    >>> import numpy as np
    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = DOSLB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    >>> decision = policy.decide(policy.start(), np.eye(2), Draw())
    >>> decision.step, bool(decision.dearest[0] > 0.5)
    (1.0, True)
    """

    optimism: Optimism = field(init=False, default="directional")
    own_sets: bool = field(init=False, default=False)

    returns: ClassVar[bool] = False
    theorem: ClassVar[str] = ""

    def form_for(self, actions: Any) -> Form | None:
        return self.form if actions.between else MIXTURES._replace(roving=self.form.roving)

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        if isinstance(actions, ActionSet) and not actions.between:
            listed = self.fitting(actions.as_list())
            of_round, form = self.safe_named_by(listed), MIXTURES._replace(roving=self.form.roving)
            seen = self.chosen(form, state, listed.features, listed.eligible, draw, of_round)
            action = own(WRITTEN_IN(seen.layout, seen.answer).action)
            decision = decision_from(seen, action, self.thresholds, draw.round, why=DARING)
            return self.explained(seen, state, decision, of_round)
        return super().choose(state, actions, draw)
