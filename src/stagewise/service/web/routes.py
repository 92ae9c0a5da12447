"""Every route of the desk but the page's: who may ask, what is sent, what is answered, what is refused."""

from typing import Any

from stagewise.service.keys import ADMIN, READER, WRITER
from stagewise.service.messages import (
    Acknowledge,
    Asked,
    Changed,
    ChangeMode,
    Decided,
    GivenReason,
    NewProblem,
    Refusal,
    Told,
)
from stagewise.service.offline import LearnLog, Loaded
from stagewise.service.web import bodies, changing, looking, personalizer
from stagewise.service.web.decisions import QuickDecisions, decide
from stagewise.service.web.metrics import metrics
from stagewise.service.web.openapi import Sent, openapi
from stagewise.service.web.outcomes import QuickOutcomes, learn
from stagewise.service.web.personalizer import activate, rank, reward
from stagewise.service.web.route import Does, Route

ONE = "/v1/{experiment}"
EVENT = "/personalizer/v1.0/events/{event}"
LARGEST_LOG_BODY = 1 << 24
GONE = (404, 503)
TRIED = (404, 409, 503)
AZURE: dict[str, Any] = {"refusal": personalizer.refusal, "key_header": b"ocp-apim-subscription-key", "role": WRITER}
EVERYWHERE: dict[str, Any] = {"answers": {200: bodies.Everywhere}, "refuses": (409, 503)}


def look(path: str, does: Does, shows: Any, tells: str, *, refuses: tuple[int, ...] = (), **more: Any) -> Route:
    """Return a route by which something is looked at."""
    told = {"role": READER, "answers": {200: shows}, **more}
    return Route(method="GET", path=path, does=does, tells=tells, refuses=refuses, **told)


def change(path: str, does: Does, takes: Any, tells: str, *, refuses: tuple[int, ...] = TRIED, **more: Any) -> Route:
    """Return a route by which something is changed."""
    told = {"role": ADMIN, "answers": {200: Changed}, **more}
    return Route(method="POST", path=path, does=does, takes=takes, tells=tells, refuses=refuses, **told)


ROUTES = (
    Route(
        method="POST",
        path=f"{ONE}/decisions",
        role=WRITER,
        does=decide,
        quick=QuickDecisions(),
        takes=Asked | list[Asked],
        answers={200: Decided | list[Decided | Refusal], 503: Decided | list[Decided | Refusal] | Refusal},
        refuses=(404, 409),
        tells="Decide for one user, or for up to 1000 in a list that is answered item by item.",
    ),
    Route(
        method="POST",
        path=f"{ONE}/outcomes",
        role=WRITER,
        does=learn,
        quick=QuickOutcomes(),
        takes=Sent | list[Sent],
        answers={200: Told | list[Told | Refusal]},
        refuses=TRIED,
        tells="Tell what came of one decision, or of up to 1000 in a list that is answered item by item.",
    ),
    look("/v1/experiments", looking.experiments, list[bodies.Summary], "List the experiments and how they stand."),
    look(ONE, looking.experiment, bodies.Whole, "Tell how an experiment stands, and its problem.", refuses=(404,)),
    look(
        f"{ONE}/decisions/{{decision_id}}",
        looking.explain,
        dict[str, Any],
        "Explain a decision: what was asked, by which bounds it was made, what came of it.",
        refuses=GONE,
    ),
    look(f"{ONE}/figures", looking.figures, bodies.Figures, "Tell what the page shows.", refuses=GONE),
    look(
        f"{ONE}/log",
        looking.log,
        bodies.Page,
        "Read rows of the log, in order, to audit them.",
        refuses=(404, 422, 503),
        query={
            "after": "the row after which to begin; 0 if left out",
            "limit": "how many rows, 1 to 10000; 1000 if left out",
        },
    ),
    change(f"{ONE}/mode", changing.mode, ChangeMode, "Change the mode: off, shadow, canary (with a share) or live."),
    change(
        f"{ONE}/kill",
        changing.kill,
        GivenReason,
        "Pull the kill switch: from within a second on, only the safe action is served.",
    ),
    change(f"{ONE}/revive", changing.revive, GivenReason, "Let go of the kill switch."),
    change(
        f"{ONE}/acknowledge",
        changing.acknowledge,
        Acknowledge,
        "Say that a contradiction is known and the experiment may go on.",
    ),
    change(
        f"{ONE}/problem",
        changing.problem,
        NewProblem,
        "Begin another version of the problem.",
        answers={200: bodies.Version},
    ),
    change(
        f"{ONE}/log",
        changing.learn_log,
        LearnLog,
        "Learn a log of another policy, once and before the first decision; the doctor checks it first.",
        answers={200: Loaded},
        largest=LARGEST_LOG_BODY,
    ),
    change("/v1/kill", changing.kill_all, GivenReason, "Pull the kill switch of all experiments.", **EVERYWHERE),
    change(
        "/v1/revive",
        changing.revive_all,
        GivenReason,
        "Let go of the kill switch of all experiments; those that were killed by their own stay so.",
        **EVERYWHERE,
    ),
    look(
        "/v1/keys",
        changing.list_keys,
        list[bodies.KnownKey],
        "List the keys: names, roles, when they were made and revoked.",
        role=ADMIN,
    ),
    change(
        "/v1/keys",
        changing.add_key,
        bodies.NewKey,
        "Make a key; the answer is the only time that it is shown.",
        answers={201: bodies.MadeKey},
        refuses=(409, 503),
    ),
    Route(
        method="DELETE",
        path="/v1/keys/{name}",
        role=ADMIN,
        does=changing.revoke_key,
        answers={204: None},
        refuses=TRIED,
        tells="Revoke a key: it is refused within a second, in every process.",
    ),
    Route(
        method="POST",
        path="/personalizer/v1.0/rank",
        does=rank,
        takes=personalizer.RankRequest,
        answers={201: personalizer.RankResponse, 503: personalizer.RankResponse | personalizer.PersonalizerRefusal},
        refuses=(404, 409),
        tells="Decide, for clients of Azure Personalizer.",
        **AZURE,
    ),
    Route(
        method="POST",
        path=f"{EVENT}/reward",
        does=reward,
        takes=personalizer.RewardRequest,
        answers={204: None},
        refuses=TRIED,
        tells="Take a reward, for clients of Azure Personalizer.",
        **AZURE,
    ),
    Route(
        method="POST",
        path=f"{EVENT}/activate",
        does=activate,
        answers={204: None},
        refuses=(404, 409, 422, 503),
        tells="Take it that a deferred event was shown, for clients of Azure Personalizer.",
        **AZURE,
    ),
    look("/livez", looking.alive, bodies.Alive, "Say that the process is there; needs no key.", role=None),
    look(
        "/readyz",
        looking.ready,
        bodies.Ready,
        "Say whether the desk is ready.",
        answers={200: bodies.Ready, 503: bodies.Ready},
    ),
    look("/metrics", metrics, str, "Tell figures to Prometheus.", refuses=(503,)),
    look("/version", looking.version, bodies.About, "Say what runs here."),
    look("/openapi.json", openapi, dict[str, Any], "Tell all this as OpenAPI 3.1."),
)
