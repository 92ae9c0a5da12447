"""What a certificate must say: by its own totals while nothing is played, and by its runs once all are played again."""

import json
from typing import Any

from stagewise.reports.agreement import SPREAD, counts_fit, disagreements, impossible
from stagewise.reports.evidence import Tally, Terms, weighed, weights
from stagewise.reports.findings import column
from stagewise.reports.result import Result, merged
from stagewise.simulation.certify import POINTS, concluded, plan_for
from stagewise.simulation.claim import setting, terms_for, theorem
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.recording import recorded

CLOSE = 1e-9  # relative; what arithmetic in another order may come to
SENTENCES = {
    "claim": "it claims something of other rounds than were played",
    "violations": "what it says of broken limits is not what its runs say",
    "coverage": "what it says of the intervals is not what its runs say",
    "thresholds": "the limits it names are not the policy's",
    "assumptions": "what it says was assumed is not what the policy assumes",
    "margins": "what it says was left to the limits is not what its runs say",
    "regret": "what it says of regret is not what its runs and the theorem say",
    "policy": "the policy it names is not the one that was played",
    "world": "the world it names is not the one that was played in",
}


def weighed_again(content: dict[str, Any], policy: Any, world: Any, near: float = CLOSE) -> list[str]:
    """Return where a certificate says something else than its own totals, its policy and its world do."""
    pairs, plan, batches = Pairs(policy, world), content["plan"], content["batches"]
    terms, due = terms_of(content, pairs), plan_due(plan)
    tally, clear = Tally.of(terms), [False]
    for batch in batches:
        tally = tally.plus(batch)
        result = weighed(tally, terms, complete=tally.runs == plan["runs"])
        clear.append(plan["early"] and result.clear)
    faults = [] if consecutive(content) else ["its batches are not those of its plan"]
    if any(clear[:-1]) or (tally.runs < plan["runs"] and not clear[-1]):
        faults.append("its runs end where its plan does not")
    faults += unlike(content, {**weights(terms, plan["rounds"], result), **setting(pairs, due)}, near)
    ends, broken = recorded(plan["rounds"], POINTS), set(impossible(content, near))
    lines = {"rounds": ends.tolist(), **theorem(pairs, ends)}
    if any(disagreements({name: content["regret"][name] for name in lines}, lines, near)):
        broken.add("regret")
    if tuple(content["margins"]) != terms.names[1:]:
        broken.add("margins")
    return faults + [sentence(name) for name in SPREAD if name in broken]


def terms_of(content: dict[str, Any], pairs: Pairs) -> Terms:
    """Return what a certificate claims of a policy."""
    claim, backend = content["claim"], content["plan"]["backend"]
    return terms_for(*pairs(0), claim["delta"], claim["confidence"], backend)


def plan_due(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan with batches and points as they must be."""
    return plan_for(plan["rounds"], plan["runs"], plan["seed"], plan["early"], plan["backend"])


def consecutive(content: dict[str, Any]) -> bool:
    """Say whether the batches follow on each other as the plan says."""
    plan, at = content["plan"], 0
    size = plan_due(plan)["batch"]
    for batch in content["batches"]:
        if batch["first"] != at or batch["runs"] != min(size, plan["runs"] - at):
            return False
        at += batch["runs"]
    return True


def played_again(content: dict[str, Any], pairs: Pairs, parts: list[Result], near: float) -> list[str]:
    """Return where a certificate says something else than all its runs do, which were played again."""
    due = concluded(pairs, parts, plan_due(content["plan"]), terms_of(content, pairs))
    margins = zip(content["margins"].items(), column(merged(parts), "margin").T, strict=False)
    for (name, one), values in margins:
        if name in due["margins"] and counts_fit(one, values, near):
            due["margins"][name]["counts"] = one["counts"]
    due["batches"] = content["batches"]  # compared one by one
    return unlike(content, due, near)


def unlike(content: dict[str, Any], due: dict[str, Any], near: float) -> list[str]:
    """Return, in a sentence each, the sections that are not as they must be."""
    due, faults = json.loads(json.dumps(due)), []
    if due["world"]["family"] == "callable" and "name" in content["world"]:
        due["world"]["name"] = content["world"]["name"]  # as told: a module that is run is called otherwise
    if (content["verdict"], content["grounds"]) != (due.pop("verdict"), due.pop("grounds")):
        words = f"{content['verdict']!r}, resting on what is {content['grounds']!r}"
        faults.append(f"its verdict is {words}, and that is not what its runs say")
    for name, value in due.items():
        loose = name in ("policy", "world")  # a setting that is not named is the default
        if any(disagreements(content[name], value, 0.0 if loose else near, more=loose)):
            faults.append(sentence(name))
    return faults


def sentence(name: str) -> str:
    """Return what is wrong where a section is not what it must be."""
    return SENTENCES.get(name, f"what it says under {name!r} is not what its runs say")
