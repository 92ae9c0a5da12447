"""A certificate checked again: does it say what its numbers say, and do its runs give these numbers?"""

import secrets
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.policies.saved import decoded, kinds
from stagewise.problem.checks import number, one_of, seed_of, shown
from stagewise.problem.errors import InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.renamed import today
from stagewise.reports.agreement import SPREAD, disagreements, outside
from stagewise.reports.certificate import Certificate
from stagewise.reports.findings import digest, totals
from stagewise.reports.result import Result, merged
from stagewise.simulation.certify import audited
from stagewise.simulation.executors import Workers, opened
from stagewise.simulation.jobs import BACKENDS, Batch, played
from stagewise.simulation.plan import machine, versions
from stagewise.simulation.restated import CLOSE, consecutive, played_again, sentence, weighed_again
from stagewise.worlds.family import family_of, rebuilt
from stagewise.worlds.linear import LinearWorld

TOLERANCE = 1e-6  # relative, where another backend, version or machine may round differently


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
    backend: str | None = None,
) -> Verification:
    """Play a random `part` of a certificate's runs again and compare; chosen by chance, or by `seed`.

    Everything that the certificate says is held against its own totals, the policy and the world, and the totals of
    every batch that is played again against its runs: to the bit where backend, versions and machine are those of the
    certificate, else within a tolerance. What it says of all runs together (quantiles, histograms, curves) is compared
    with `part=1.0`; else it must be possible, and `unconfirmed` names it. `policy` and `world` are needed where the
    certificate's were functions, or someone's own; `backend` where another than the certificate's shall play, such as
    "cpu" on a machine without a GPU.
    """
    content = Certificate.load(path).content
    chosen = chosen_batches(content, number(part, "part"), None if seed is None else seed_of(seed))
    plan = content["plan"]
    player = plan["backend"] if backend is None else one_of(backend, BACKENDS, "backend")
    bits = player == plan["backend"] and same_arithmetic(content["made"])
    near = CLOSE if bits else TOLERANCE
    try:
        content = named_today(content)
        policy, world = played_in(content, policy, world)
        faults = weighed_again(content, policy, world, near)
        if not consecutive(content):  # their sizes are anybody's, and are not played
            return Verification(0, 0, 0, tuple(faults), SPREAD)
        job = audited(policy, world, plan["rounds"], plan["seed"], player)
    except StagewiseError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise InvalidFile(f"{path} lacks something or holds it in another form: {shown(error)}") from None
    batches = [content["batches"][i] for i in chosen]
    todo = {one["first"]: Batch(job, range(one["first"], one["first"] + one["runs"])) for one in batches}
    runs = sum(one["runs"] for one in batches)
    with opened(executor, len(todo), runs * plan["rounds"]) as workers:
        found = dict(played(todo, workers, lambda _: None))
    parts = [found[one["first"]] for one in batches]
    faults += [fault for one, part in zip(batches, parts, strict=True) for fault in unequal(one, part, bits, near)]
    whole = len(parts) == len(content["batches"])
    if whole:
        faults += played_again(content, job.pairs, parts, near)
    else:
        faults += [sentence(name) for name in outside(content, merged(parts), near)]
    equal = sum(one["digest"] == digest(part) for one, part in zip(batches, parts, strict=True))
    return Verification(runs, len(parts), equal, tuple(dict.fromkeys(faults)), () if whole else SPREAD)


def same_arithmetic(made: dict[str, Any]) -> bool:
    """Say whether a certificate was made by what would play it now, so that the very bits must be the same."""
    return bool(made["versions"] == versions() and made["machine"].split(",")[0] == machine().split(",")[0])


def unequal(batch: dict[str, Any], played: Result, bits: bool, near: float) -> list[str]:
    """Return what is wrong with a batch's totals, now that it was played again; `bits`: its digest counts too."""
    due = totals(played)
    if not bits:
        due["digest"] = batch["digest"]
    if not any(disagreements(batch, due, near)):
        return []
    return [f"runs {due['first']} to {due['first'] + due['runs'] - 1}, played again, give other numbers"]


def named_today(content: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate with settings by their names of today."""
    policy, world = content["policy"], content["world"]
    if policy["kind"] in kinds() and isinstance(policy["settings"], dict):
        policy = {**policy, "settings": today(kinds()[policy["kind"]], policy["settings"])}
    if world.get("world", {}).get("kind") == LinearWorld.__name__:
        world = {**world, "world": today(LinearWorld, world["world"])}
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
