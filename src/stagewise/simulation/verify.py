"""A certificate checked again: does it say what its numbers say, and do its runs give these numbers?"""

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.policies.saved import decoded
from stagewise.problem.checks import seed_of
from stagewise.problem.errors import InvalidFile, InvalidProblem, StagewiseError
from stagewise.reports.assumptions import assumptions
from stagewise.reports.certificate import Certificate, reweighed, told
from stagewise.reports.findings import agrees, totals
from stagewise.simulation.certify import batch_size, findings_of, packages, task_for
from stagewise.simulation.claim import terms_for, thresholds_of
from stagewise.simulation.executors import Workers, opened, performed
from stagewise.simulation.plan import machine
from stagewise.simulation.size import counted
from stagewise.simulation.travel import pair
from stagewise.worlds.family import family_of, rebuilt

TOLERANCE = 1e-6  # relative, where another backend, version or machine may round differently


class Verification(NamedTuple):
    """What a second look found."""

    runs: int  # played again
    batches: int  # of so many runs each
    equal: int  # batches that are the same to the bit
    faults: tuple[str, ...]  # none: the certificate stands

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
    backend: str | None = None,
) -> Verification:
    """Play a random `part` of a certificate's runs again and compare; chosen by chance, or by `seed`.

    To the bit where backend, versions and machine are those of the certificate, else within a tolerance. Also weighs
    the certificate's own totals again. `policy` and `world` are needed where the certificate's were functions;
    `backend` where another than the certificate's shall play, such as "cpu" on a machine without a GPU.
    """
    content = Certificate.load(path).content
    if seed is not None:
        seed_of(seed)
    try:
        policy, family = played_in(content, policy, world)
        faults = weighed_again(content, policy, family)
        chosen = chosen_batches(content, part, seed)
        plan = {**content["plan"], "backend": backend or content["plan"]["backend"]}
        counted(plan["rounds"], "rounds")
        seed_of(plan["seed"])
        kept = {i: content["batches"][i] for i in chosen}
        tasks = {i: task_for(policy, family, plan, one["first"], one["runs"]) for i, one in kept.items()}
        made = {"versions": None, "machine": "", **content.get("made", {})}
    except StagewiseError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise InvalidFile(f"{path} lacks something or holds it in another form: {error!r}") from None
    alike = made["versions"] == packages() and plan["backend"] == content["plan"]["backend"]
    alike &= str(made["machine"]).split(",")[0] == machine().split(",")[0]
    equal, runs = 0, sum(task[-1] for task in tasks.values())
    with opened(executor, len(tasks), runs * plan["rounds"]) as workers:
        for i, findings in performed(findings_of, tasks, workers):
            before, now = kept[i], totals(findings)
            equal += before["digest"] == now["digest"]
            if before["digest"] != now["digest"] and (alike or not agrees(before, now, TOLERANCE)):
                last = now["first"] + now["runs"] - 1
                faults.append(f"runs {now['first']} to {last}, played again, give other numbers")
    return Verification(runs, len(tasks), equal, tuple(faults))


def played_in(content: dict[str, Any], policy: Any, world: Any) -> tuple[Any, Any]:
    """Return the policy and the family, built again unless they are given."""
    told_of = content["world"]
    if told_of["family"] == "callable":
        if world is None or (policy is None and not told_of["draws_policies"]):
            raise InvalidProblem(
                f"the worlds of this certificate were drawn by {told_of['name']}; "
                "give that function, and the policy, to stagewise.verify"
            )
        return policy, world
    if policy is None:
        if not isinstance(content["policy"]["settings"], dict):
            raise InvalidProblem(f"{content['policy']['kind']} is not a policy of stagewise; give it to verify")
        policy = decoded(content["policy"])
    if world is None:
        base = rebuilt(told_of["world"])
        drawn = (told_of.get("safe", 0), told_of.get("seed", 0), told_of.get("spread"))
        world = family_of(told_of["family"], base, *drawn)
    return policy, world


def chosen_batches(content: dict[str, Any], part: float, seed: int | None) -> list[int]:
    """Return which batches are played again: at least one."""
    if not 0.0 < part <= 1.0:
        raise InvalidProblem(f"part is {part}; it must be a share of the runs, above 0 and at most 1")
    count = len(content["batches"])
    chance = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
    return sorted(chance.choice(count, size=max(1, round(part * count)), replace=False).tolist())


def weighed_again(content: dict[str, Any], policy: Any, family: Any) -> list[str]:
    """Return where a certificate says something else than its own totals do."""
    claim, plan, batches = content["claim"], content["plan"], content["batches"]
    terms = terms_for(*pair(policy, family, 0), claim["delta"], claim["confidence"], plan["backend"])
    runs = sum(batch["runs"] for batch in batches)
    violating = sum(batch["violating"] for batch in batches)
    missing = np.sum([batch["missing"] for batch in batches], axis=0).tolist()
    result = reweighed(runs, violating, missing, terms, runs == plan["runs"])
    faults = []
    if not consecutive(batches, plan):
        faults.append("its batches are not those of its plan")
    if content["violations"] != told(result.violations):
        faults.append("what it says of broken limits is not what its runs say")
    said = [{name: value for name, value in one.items() if name != "signal"} for one in content["coverage"]]
    if said != [told(one) for one in result.coverage if one is not None]:
        faults.append("what it says of the intervals is not what its runs say")
    if (content["verdict"], content["grounds"]) != (result.verdict, result.grounds):
        said_so = f"{content['verdict']!r}, resting on what is {content['grounds']!r}"
        faults.append(f"its verdict is {said_so}, and its runs say {result.verdict!r} and {result.grounds!r}")
    return faults + reworded(content, *pair(policy, family, 0))


def reworded(content: dict[str, Any], policy: Any, world: Any) -> list[str]:
    """Return where the words that people read differ from the policy, the world and the batches they are about."""
    faults = []
    if content["claim"]["rounds"] != content["plan"]["rounds"]:
        faults.append("it claims something of other rounds than were played")
    if content["thresholds"] != thresholds_of(policy, world):
        faults.append("the limits it names are not the policy's")
    if content["assumptions"] != assumptions(policy, world):
        faults.append("what it says was assumed is not what the policy assumes")
    worst = np.min([batch["margin"] for batch in content["batches"]], axis=0)
    if not np.allclose([one["quantiles"]["0"] for one in content["margins"].values()], worst, rtol=0.0, atol=TOLERANCE):
        faults.append("what it says was left to the limits is not what its runs say")
    return faults


def consecutive(batches: Iterable[dict[str, Any]], plan: dict[str, Any]) -> bool:
    """Say whether the batches follow on each other as the plan says."""
    size, at = batch_size(plan["rounds"], plan["runs"], plan["backend"]), 0
    for batch in batches:
        if batch["first"] != at or batch["runs"] != min(size, plan["runs"] - at):
            return False
        at += batch["runs"]
    return True
