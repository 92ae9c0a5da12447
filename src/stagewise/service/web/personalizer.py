"""Rank, reward and activate, as clients of Azure Personalizer (v1.0) send them; a desk answers, and keeps its limits.

An action's id must be an action of the problem. Of the context's features those that the problem declares are taken, by
their own name or by their path ("user.age"), however deep they stand. A reward is the problem's reward; costs come by
the desk's own outcomes under the same id, or count as what their window declares.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from stagewise.policies.problem import Problem
from stagewise.problem.errors import InvalidActions
from stagewise.problem.words import shown
from stagewise.service.errors import Conflict
from stagewise.service.messages import Asked, Decided, Id, Known, Outcome
from stagewise.service.records import SHOWN
from stagewise.service.web.call import Answer, Call, answer
from stagewise.service.web.refusing import AGAIN

CODES = {404: "ResourceNotFound", 500: "InternalServerError", 503: "ServiceUnavailable"}


class RankableAction(Struct):
    """An action that is on offer; its features are not needed, as the desk learns by action."""

    id: Id
    features: list[Any] = []


class RankRequest(Struct, rename="camel"):
    """What is known of the user, and which actions are on offer."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=1000)]
    context_features: list[dict[str, Any]] | None = None
    excluded_actions: list[str] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class RankedAction(Struct):
    """An action and the probability with which it was drawn."""

    id: str
    probability: float


class Failure(Struct):
    """Why something was refused."""

    code: str
    message: str


class PersonalizerRefusal(Struct):
    """A refusal, in that API's form."""

    error: Failure


class RankResponse(Struct, rename="camel", omit_defaults=True):
    """The action to show, and all that were on offer: it first, then the likelier ones, excluded ones last."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str
    error: Failure | None = None
    """Beside status 503 alone: the safe action is to be shown, and nothing was logged."""


class RewardRequest(Struct):
    """What came of an event."""

    value: float


_rank, _reward = msgspec.json.Decoder(RankRequest), msgspec.json.Decoder(RewardRequest)


def refusal(status: int, sentence: str) -> PersonalizerRefusal:
    """Return what a refusal looks like there."""
    return PersonalizerRefusal(Failure(CODES.get(status, "BadRequest"), sentence))


async def rank(call: Call) -> Answer:
    """Decide, and answer as a ranking."""
    name, sent = experiment_of(call), _rank.decode(call.body)
    decided = await call.desk.decide(name, asked_of(call.desk.experiment(name).problem, sent))
    ranking = RankResponse(ranked(sent, decided), decided.decision_id, decided.action)
    if decided.logged:
        return answer(ranking, 201)
    ranking.error = Failure(CODES[503], decided.fallback or "the decision could not be written")
    return answer(ranking, 503)._replace(headers=AGAIN)


async def reward(call: Call) -> Answer:
    """Take a reward."""
    name, sent = experiment_of(call), _reward.decode(call.body)
    await call.desk.learn(name, Outcome(call.words[0], {call.desk.experiment(name).problem.reward.name: sent.value}))
    return Answer(204, b"")


async def activate(call: Call) -> Answer:
    """Take it that what was decided was shown."""
    await call.desk.learn(experiment_of(call), Outcome(call.words[0], {SHOWN: True}))
    return Answer(204, b"")


def experiment_of(call: Call) -> str:
    """Return the experiment that these routes are for."""
    names = call.desk.experiments()
    if call.serves or len(names) == 1:
        return call.serves or names[0]
    raise Conflict(
        f"there are {len(names)} experiments; start the desk with --personalizer and the one that these routes are for"
    )


def asked_of(problem: Problem, sent: RankRequest) -> Asked:
    """Return a rank request as a decision that is asked for."""
    out = set(sent.excluded_actions or ())
    only = list(dict.fromkeys(action.id for action in sent.actions if action.id not in out))
    if problem.safe not in only:
        raise InvalidActions(f"the actions lack {problem.safe!r}; the safe action must always be on offer")
    known = context_of(problem, sent.context_features or [])
    return Asked(known, only, sent.event_id, deferred=bool(sent.defer_activation))


def context_of(problem: Problem, features: list[dict[str, Any]]) -> dict[str, Known]:
    """Return what the problem declares, of features that stand in a list of objects, within objects or not."""
    context: dict[str, Known] = {}
    for path, name, value in (leaf for entry in features for leaf in leaves(entry)):
        found = path if path in problem.expected else name
        if found not in problem.expected:
            continue
        if not isinstance(value, bool | int | float | str):
            raise InvalidActions(f"the feature {found!r} is {shown(value)}; it must be a number, text, true or false")
        if found in context and context[found] != value:
            raise InvalidActions(f"the feature {found!r} is both {shown(context[found])} and {shown(value)}")
        context[found] = value
    return context


def leaves(tree: dict[str, Any], path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the name and the value of everything that is no object.

    >>> list(leaves({"user": {"age": 34}, "mobile": True}))
    [('user.age', 'age', 34), ('mobile', 'mobile', True)]
    """
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", name, value


def ranked(sent: RankRequest, decided: Decided) -> list[RankedAction]:
    """Return the actions that were sent: what was drawn, then the likelier ones; excluded ones last."""
    out = set(sent.excluded_actions or ())
    ids = list(dict.fromkeys(action.id for action in sent.actions))
    chances = {name: 0.0 if name in out else decided.probabilities.get(name, 0.0) for name in ids}
    order = sorted(ids, key=lambda name: (name != decided.action, name in out, -chances[name]))
    return [RankedAction(name, chances[name]) for name in order]
