"""A certificate checked again: does it say what its numbers say, and do its runs give these numbers?"""

import json
import secrets
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.policies.encoded import decoded, kinds
from stagewise.problem.checks import number, one_of, seed_of, shown
from stagewise.problem.errors import InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.renamed import today
from stagewise.problem.words import percent
from stagewise.reports.agreement import SPREAD, counts_fit, disagreements, impossible
from stagewise.reports.certificate import Certificate
from stagewise.reports.evidence import Terms, clear, plus
from stagewise.reports.findings import column, totals
from stagewise.reports.result import Result, merged
from stagewise.simulation.certify import audited, concluded, plan_for
from stagewise.simulation.claim import terms_for
from stagewise.simulation.closeness import closeness
from stagewise.simulation.executors import Workers
from stagewise.simulation.jobs import BACKENDS, Backend, Batch, working
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.plan import machine, versions
from stagewise.worlds.family import family_of, rebuilt
from stagewise.worlds.kinds import world_kind

CLOSE = 1e-9  # relative; what arithmetic in another order may come to
TOLERANCE = 1e-6  # relative, where another backend, version or machine may round differently
SENTENCES = {
    "verdict": "its verdict is not what its runs say",
    "grounds": "its verdict rests on intervals of which its runs say something else",
    "claim": "it claims something of other rounds than were played",
    "violations": "what it says of broken limits is not what its runs say",
    "coverage": "what it says of the intervals is not what its runs say",
    "thresholds": "the limits it names are not the policy's",
    "assumptions": "what it says was assumed is not what the policy assumes",
    "margins": "what it says was left to the limits is not what its runs say",
    "regret": "what it says of regret is not what its runs and the theorem say",
    "policy": "the policy it names is not the one that was played",
    "world": "the world it names is not the one that was played in",
    "closeness": "what it says of rounds at their limits is not what its first runs say",
}


class Verification(NamedTuple):
    """What a second look found."""

    runs: int  # played again
    batches: int  # of so many runs each
    equal: int  # batches that are the same to the bit
    faults: tuple[str, ...]  # none: the certificate stands
    unconfirmed: tuple[str, ...]  # what it says of all runs together: possible, but compared only if all are played

    @property
    def stands(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.faults


def verify(
    path: str | Path,
    *,
    part: float = 0.05,
    seed: int | None = None,
    policy: Any = None,
    world: Any = None,
    executor: Workers = None,
    backend: Backend | None = None,
) -> Verification:
    """Play a random `part` of the runs of the certificate at `path` again; chosen by chance, or by `seed`.

    Everything that the certificate says is held against its own totals, the policy and the world, and the totals of
    every batch that is played again against its runs: to the bit where backend, versions and machine are those of the
    certificate, else within a tolerance. What it says of all runs together (quantiles, histograms, curves) is compared
    with `part=1.0`; else it must be possible, and `unconfirmed` names it. `policy` and `world` are needed where the
    certificate's were functions, or someone's own; `backend` where another than the certificate's shall play, such as
    "cpu" on a machine without a GPU; `executor` is as for `simulate`.
    """
    content = Certificate.load(path).content
    batches = chosen_batches(content, number(part, "part"), None if seed is None else seed_of(seed))
    plan, made = content["plan"], content["made"]
    player = plan["backend"] if backend is None else one_of(backend, BACKENDS, "backend")
    alike = made["versions"] == versions() and made["machine"].split(",")[0] == machine().split(",")[0]
    bits = alike and player == plan["backend"]
    near = CLOSE if bits else TOLERANCE
    try:
        content = named_today(content)
        pairs = Pairs(*played_in(content, policy, world))
        faults = misstated(content, pairs, near)
        if not consecutive(content):  # their sizes are anybody's, and are not played
            return Verification(0, 0, 0, tuple(faults), SPREAD)
        job = audited(pairs.policy, pairs.world, plan["rounds"], plan["seed"], player)
        if "closeness" in content:  # files of before have none
            played = sum(one["runs"] for one in content["batches"])
            if any(disagreements(content["closeness"], closeness(pairs, plan, played), near)):
                faults.append(sentence("closeness"))
    except StagewiseError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise InvalidFile(f"{path} lacks something or holds it in another form: {shown(error)}") from None
    todo = {one["first"]: Batch(job, range(one["first"], one["first"] + one["runs"])) for one in batches}
    runs, equal, whole = sum(one["runs"] for one in batches), 0, len(batches) == len(content["batches"])
    with working(executor, False, len(todo), runs, plan["rounds"]) as finished:
        parts = list(finished(todo).values())
    for one, due in zip(batches, map(totals, parts), strict=True):
        equal += one["digest"] == due["digest"]
        if any(disagreements(one, due if bits else {**due, "digest": one["digest"]}, near)):
            last = due["first"] + due["runs"] - 1
            faults.append(f"runs {due['first']} to {last}, played again, give other numbers")
    result = merged(parts)
    faults += misstated(content, pairs, near, result) if whole else map(sentence, impossible(content, result, near))
    return Verification(runs, len(parts), equal, tuple(dict.fromkeys(faults)), () if whole else SPREAD)


def misstated(content: dict[str, Any], pairs: Pairs, near: float, result: Result | None = None) -> list[str]:
    """Return where a certificate says something else than its totals, its policy and its world do, in a sentence each.

    With the `result` of all its runs, played again, what it says of all of them together is compared too.
    """
    plan, claim = plan_due(content["plan"]), content["claim"]
    terms = terms_for(pairs, claim["delta"], claim["confidence"], plan["rounds"], plan["backend"])
    due = json.loads(json.dumps(concluded(pairs, plan, terms, content["batches"], result)))
    if result is None:
        due["regret"] = content["regret"] | due["regret"]
        due["margins"] = {name: content["margins"].get(name) for name in terms.names[1:]}
    else:
        for name, values in zip(terms.names[1:], column(result, "margin").T, strict=True):
            said = content["margins"].get(name)
            if said is not None and counts_fit(said, values, near):
                due["margins"][name]["counts"] = said["counts"]
    if due["world"]["family"] == "callable" and "name" in content["world"]:
        due["world"]["name"] = content["world"]["name"]  # as told: a module that is run is called otherwise
    faults = [] if consecutive(content) else ["its batches are not those of its plan"]
    if not ends_as_planned(content, terms):
        faults.append("its runs end where its plan does not")
    for name, value in due.items():
        loose = name in ("policy", "world")  # a setting that is not named is the default
        if any(disagreements(content[name], value, 0.0 if loose else near, more=loose)):
            faults.append(sentence(name))
    return faults


def sentence(name: str) -> str:
    """Return what is wrong where a section is not what it must be."""
    return SENTENCES.get(name, f"what it says under {name!r} is not what its runs say")


def plan_due(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan with batches and points as they must be."""
    return plan_for(plan["rounds"], plan["runs"], plan["seed"], plan["early"], plan["backend"])


def consecutive(content: dict[str, Any]) -> bool:
    """Say whether the batches follow on each other as the plan says."""
    plan = plan_due(content["plan"])
    size, runs = plan["batch"], plan["runs"]
    due = ((first, min(size, runs - first)) for first in range(0, runs, size))
    return all((one["first"], one["runs"]) == next(due, None) for one in content["batches"])


def ends_as_planned(content: dict[str, Any], terms: Terms) -> bool:
    """Say whether the batches end with the first that made the answer clear, or with the last of the plan."""
    plan, counts, stops = content["plan"], list[int](), [False]
    for batch in content["batches"]:
        counts = plus(counts, batch)
        stops.append(plan["early"] and clear(counts, terms))
    return not any(stops[:-1]) and (stops[-1] or counts[0] >= plan["runs"])


def named_today(content: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate with settings by their names of today."""
    policy, world = content["policy"], content["world"]
    if policy["kind"] in kinds() and isinstance(policy["settings"], dict):
        policy = {**policy, "settings": today(kinds()[policy["kind"]], policy["settings"])}
    place = world_kind(world.get("world", {}).get("kind"))
    if place is not None:
        world = {**world, "world": today(place, world["world"])}
    return {**content, "policy": policy, "world": world}


def played_in(content: dict[str, Any], policy: Any, world: Any) -> tuple[Any, Any]:
    """Return the policy and the family, built again unless they are given."""
    told_of = content["world"]
    if told_of["family"] == "callable":
        if world is None or (policy is None and not told_of["draws_policies"]):
            raise InvalidProblem(
                f"the worlds of this certificate were drawn by {shown(told_of['name'])}; "
                "give that function, and the policy, to stagewise.verify"
            )
        return policy, world
    if policy is None:
        if not isinstance(content["policy"]["settings"], dict):
            raise InvalidProblem(f"{content['policy']['kind']} is not a policy of stagewise; give it to verify")
        policy = decoded(content["policy"])
    if world is None:
        drawn = (told_of.get("safe", 0), told_of.get("seed", 0), told_of.get("spread"))
        world = family_of(told_of["family"], rebuilt(told_of["world"]), *drawn)
    return policy, world


def chosen_batches(content: dict[str, Any], part: float, seed: int | None) -> list[dict[str, Any]]:
    """Return which batches are played again: at least one."""
    if not 0.0 < part <= 1.0:
        raise InvalidProblem(f"part is {part:g}; it must be a share of the runs, above 0 and at most 1{percent(part)}")
    batches = content["batches"]
    chance = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
    chosen = chance.choice(len(batches), size=max(1, round(part * len(batches))), replace=False)
    return [batches[i] for i in sorted(chosen.tolist())]
