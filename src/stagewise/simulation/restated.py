"""What a certificate must say: by its own totals while nothing is played, and by its runs once all are played again."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from stagewise.reports.agreement import SPREAD, counts_fit, disagreements, impossible
from stagewise.reports.certificate import Terms, Weighed, reweighed, weights
from stagewise.reports.findings import Findings, joined
from stagewise.simulation.certify import POINTS, batch_size, concluded, setting, theorem
from stagewise.simulation.claim import terms_for
from stagewise.simulation.recording import recorded
from stagewise.simulation.travel import pair

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


def claimed(content: dict[str, Any], policy: Any, family: Any) -> Terms:
    """Return what a certificate claims of a policy."""
    claim, backend = content["claim"], content["plan"]["backend"]
    return terms_for(*pair(policy, family, 0), claim["delta"], claim["confidence"], backend)


def weighed_again(content: dict[str, Any], policy: Any, family: Any, near: float = CLOSE) -> list[str]:
    """Return where a certificate says something else than its own totals, its policy and its world do."""
    terms, plan, batches = claimed(content, policy, family), content["plan"], content["batches"]
    results = list(weighings(batches, terms, plan["runs"]))
    runs = sum(batch["runs"] for batch in batches)
    faults = []
    if not consecutive(batches, plan):
        faults.append("its batches are not those of its plan")
    decided = [result.clear for result in results]
    late, cut = plan["early"] and any(decided[:-1]), runs < plan["runs"] and not (plan["early"] and decided[-1])
    if late or cut:
        faults.append("its runs end where its plan does not")
    due = {**weights(terms, plan["rounds"], results[-1]), **setting(policy, family, plan)}
    faults += unlike(content, due, near)
    lines = {name: content["regret"][name] for name in ("rounds", "theorem", "failure")}
    ends = recorded(plan["rounds"], POINTS)
    broken = set(impossible(content, near))
    if any(disagreements(lines, {"rounds": ends.tolist(), **theorem(*pair(policy, family, 0), ends)}, near)):
        broken.add("regret")
    if tuple(content["margins"]) != terms.names[1:]:
        broken.add("margins")
    return faults + [sentence(name) for name in SPREAD if name in broken]


def weighings(batches: list[dict[str, Any]], terms: Terms, planned: int) -> Iterator[Weighed]:
    """Yield what the runs said after every batch; only the last is weighed as complete, if it is."""
    runs, violating, missing = 0, 0, np.zeros(len(terms.names), dtype=np.int64)
    for place, batch in enumerate(batches):
        runs, violating = runs + batch["runs"], violating + batch["violating"]
        missing = missing + np.array(batch["missing"], dtype=np.int64)
        last = place == len(batches) - 1
        yield reweighed(runs, violating, missing.tolist(), terms, last and runs == planned)


def consecutive(batches: Iterable[dict[str, Any]], plan: dict[str, Any]) -> bool:
    """Say whether the batches follow on each other as the plan says."""
    size, at = batch_size(plan["rounds"], plan["runs"], plan["backend"]), 0
    for batch in batches:
        if batch["first"] != at or batch["runs"] != min(size, plan["runs"] - at):
            return False
        at += batch["runs"]
    return True


def played_again(content: dict[str, Any], policy: Any, family: Any, parts: list[Findings], near: float) -> list[str]:
    """Return where a certificate says something else than all its runs do, which were played again."""
    due = concluded(policy, family, parts, content["plan"], claimed(content, policy, family))
    findings = joined(parts)
    for j, (name, one) in enumerate(content["margins"].items()):
        if name in due["margins"] and counts_fit(one, findings.margin[:, j], near):
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
