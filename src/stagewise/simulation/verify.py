"""Verification of certificates: check their statements, and replay a part of their runs."""

import json
import secrets
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.policies.saved_policies import decode_value
from stagewise.problem.checks import check_choice, check_number, check_seed
from stagewise.problem.errors import ErrorCode, Fault, InvalidFile, InvalidProblem, SentenceCode, StagewiseError
from stagewise.problem.formatting import safe_repr, suggest_percent
from stagewise.reports.certificate import SimulationCertificate
from stagewise.reports.evidence import ClaimTerms, add_batch, compute_totals, get_column, is_decided
from stagewise.reports.result import Result, merge_results
from stagewise.simulation.certify import build_audited_job, build_content, build_plan, build_terms, measure_closeness
from stagewise.simulation.executors import Workers
from stagewise.simulation.oracle import PolicyWorlds
from stagewise.simulation.plan import describe_linear_algebra, describe_platform, get_versions
from stagewise.simulation.simulate import BACKENDS, Backend, Batch, open_workers
from stagewise.worlds.world_families import build_family, build_world

EXACT_TOLERANCE = 1e-9  # relative, for arithmetic in another order
TOLERANCE = 1e-6  # relative, where another backend, version or machine may round differently
AGGREGATE_SECTIONS = ("first_violation", "optimism", "regret", "margins", "first_near_optimal_round")  # of all runs
ROUNDING = 1e-9  # relative
ALGEBRA = "linear algebra"  # of runs in Python


class FaultCode(SentenceCode):
    """What is wrong with a certificate. The codes never change; the sentences may."""

    SECTION_DIFFERS = "section_differs", "the section {section!r} does not match the runs, the policy or the world"
    RUNS_DIFFER = "runs_differ", "runs {first} to {last} give other numbers when replayed"
    ARITHMETIC_DIFFERS = (
        "arithmetic_differs",
        "the runs were computed with {made} and replayed with {here}, which round differently, and a solver can "
        "amplify that; replay them with the same linear algebra (with OpenBLAS, set OPENBLAS_CORETYPE)",
    )
    BATCHES_DIFFER = "batches_differ", "the batches are not those of the plan"
    END_DIFFERS = "end_differs", "the runs do not end where the plan does"


class Verification(NamedTuple):
    """The result of a verification.

    Attributes:
        runs: The number of runs that were replayed.
        batches: The number of batches that were replayed.
        equal: The number of batches that are equal to the bit.
        faults: What is wrong, each with `code` and `details`; empty if the certificate stands.
        unconfirmed: Sections about all runs together, which are only compared if all are replayed.
        differences: What made the certificate and what verified it, where they differ: the version of a package, the
            machine, the backend or the linear algebra, such as {"stagewise": ("0.1.0", "0.2.0")}. If there is any,
            numbers are compared within a tolerance; `equal` says how many batches are equal to the bit all the same.
    """

    runs: int
    batches: int
    equal: int
    faults: tuple[Fault, ...]
    unconfirmed: tuple[str, ...]
    differences: dict[str, tuple[str, str]]

    @property
    def stands(self) -> bool:
        """Whether no fault was found."""
        return not self.faults


def verify_certificate(
    path: str | Path,
    *,
    replay_fraction: float = 0.05,
    seed: int | None = None,
    policy: Any = None,
    world: Any = None,
    executor: Workers = None,
    backend: Backend | None = None,
) -> Verification:
    """Check a certificate, and replay a random part of its runs.

    Every statement is compared with the totals, the policy and the world, and the totals of every replayed batch with
    its runs: to the bit if backend, versions and machine are those of the certificate, else within a tolerance. Runs in
    Python can depend on the linear algebra beyond that; a fault says so.
    Statements about all runs together (quantiles, histograms, curves) are compared only with `replay_fraction=1.0`;
    else they must be possible, and `unconfirmed` lists them.

    Args:
        path: The certificate's file or folder.
        replay_fraction: The fraction of the runs that is replayed.
        seed: The seed of the choice of runs; random by default.
        policy: The policy, if the certificate's was a function or your own.
        world: The world, if the certificate's was a function or your own.
        executor: As for `simulate`.
        backend: Another backend than the certificate's, such as "cpu" on a machine without a GPU.

    Returns:
        The verification; `stands` says whether the certificate stands.

    Raises:
        InvalidFile: The file is not a certificate.
        InvalidProblem: An argument is invalid, or the policy or the world is needed.

    Example:
        >>> import stagewise as sw, tempfile
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> world, folder = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5]), tempfile.mkdtemp()
        >>> certificate = sw.certify(policy, world, rounds=5, runs=4, progress=False, out=folder)
        >>> verify_certificate(folder, replay_fraction=1.0).stands
        True
    """
    content = SimulationCertificate.load(path).content
    batches = choose_batches(
        content, check_number(replay_fraction, "replay_fraction"), None if seed is None else check_seed(seed)
    )
    plan = content["plan"]
    player = plan["backend"] if backend is None else check_choice(backend, BACKENDS, "backend")
    differences = compare_environments(content, player)
    is_exact = not differences
    near = EXACT_TOLERANCE if is_exact else TOLERANCE
    try:
        pairs = PolicyWorlds(*rebuild_pair(content, policy, world))
        faults = find_misstatements(content, pairs, near)
        if not is_consecutive(content):  # batches of arbitrary sizes are not replayed
            return Verification(0, 0, 0, tuple(faults), AGGREGATE_SECTIONS, differences)
        job = build_audited_job(pairs.policy, pairs.world, plan["rounds"], plan["seed"], player)
        run_count = sum(one["runs"] for one in content["batches"])
        if any(find_differences(content["closeness"], measure_closeness(pairs, plan, run_count), near)):
            faults.append(Fault.of(FaultCode.SECTION_DIFFERS, section="closeness"))
    except StagewiseError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        template = "{path} lacks a field or has one of the wrong type: {error}"
        raise InvalidFile(ErrorCode.FILE_CORRUPT, template, path=path, error=safe_repr(error)) from None
    todo = {one["first"]: Batch(job, range(one["first"], one["first"] + one["runs"])) for one in batches}
    runs, equal, replays_all = sum(one["runs"] for one in batches), 0, len(batches) == len(content["batches"])
    with open_workers(executor, False, len(todo), runs, plan["rounds"]) as finished:
        parts = list(finished(todo).values())
    for one, due in zip(batches, map(compute_totals, parts), strict=True):
        equal += one["digest"] == due["digest"]
        if any(find_differences(one, due if is_exact else {**due, "digest": one["digest"]}, near)):
            last = due["first"] + due["runs"] - 1
            faults.append(Fault.of(FaultCode.RUNS_DIFFER, first=due["first"], last=last))
    result = merge_results(parts)
    faults += (
        find_misstatements(content, pairs, near, result)
        if replays_all
        else [Fault.of(FaultCode.SECTION_DIFFERS, section=name) for name in find_impossible(content, result, near)]
    )
    if ALGEBRA in differences and any(fault.code == FaultCode.RUNS_DIFFER for fault in faults):
        made, here = differences[ALGEBRA]
        faults.append(Fault.of(FaultCode.ARITHMETIC_DIFFERS, made=made, here=here))
    unconfirmed = () if replays_all else AGGREGATE_SECTIONS
    once = [fault for i, fault in enumerate(faults) if fault not in faults[:i]]
    return Verification(runs, len(parts), equal, tuple(once), unconfirmed, differences)


def compare_environments(content: dict[str, Any], player: str) -> dict[str, tuple[str, str]]:
    """Return what made the certificate and what verifies it, where they differ; the number of cores changes nothing."""
    made_on = content["made"]["machine"].split(", ")
    made = {**content["made"]["versions"], "machine": made_on[0], "backend": content["plan"]["backend"]}
    here = {**get_versions(), "machine": describe_platform(), "backend": player}
    if player == "python":
        made[ALGEBRA], here[ALGEBRA] = made_on[-1], describe_linear_algebra()
    names = [*here, *(name for name in made if name not in here)]
    pairs = {name: (made.get(name, "none"), here.get(name, "none")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def find_misstatements(
    content: dict[str, Any], pairs: PolicyWorlds, near: float, result: Result | None = None
) -> list[Fault]:
    """Return a fault for each section that differs from the totals, the policy or the world.

    With the `result` of all runs, replayed, statements about all of them are compared too.
    """
    plan, claim = build_expected_plan(content["plan"]), content["claim"]
    terms = build_terms(pairs, claim["delta"], claim["confidence"], plan["rounds"], plan["backend"])
    due = json.loads(json.dumps(build_content(pairs, plan, terms, content["batches"], result)))
    if result is None:
        due["regret"] = content["regret"] | due["regret"]
        due["margins"] = {name: content["margins"].get(name) for name in terms.names[1:]}
    else:
        for name, values in zip(terms.names[1:], get_column(result, "margin").T, strict=True):
            margin = content["margins"].get(name)
            if margin is not None and is_histogram_consistent(margin, values, near):
                due["margins"][name]["counts"] = margin["counts"]
    if due["world"]["family"] == "callable" and "name" in content["world"]:
        due["world"]["name"] = content["world"]["name"]  # a module that is run as a script has another name
    faults = [] if is_consecutive(content) else [Fault.of(FaultCode.BATCHES_DIFFER)]
    if not ends_as_planned(content, terms):
        faults.append(Fault.of(FaultCode.END_DIFFERS))
    for name, value in due.items():
        loose = name in ("policy", "world")  # a missing setting is the default
        if any(find_differences(content[name], value, 0.0 if loose else near, more=loose)):
            faults.append(Fault.of(FaultCode.SECTION_DIFFERS, section=name))
    return faults


def build_expected_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the plan with the batches and points that it must have."""
    return build_plan(plan["rounds"], plan["runs"], plan["seed"], plan["stop_early"], plan["backend"])


def is_consecutive(content: dict[str, Any]) -> bool:
    """Return whether the batches follow each other as planned."""
    plan = build_expected_plan(content["plan"])
    size, runs = plan["batch"], plan["runs"]
    due = ((first, min(size, runs - first)) for first in range(0, runs, size))
    return all((one["first"], one["runs"]) == next(due, None) for one in content["batches"])


def ends_as_planned(content: dict[str, Any], terms: ClaimTerms) -> bool:
    """Return whether the batches end with the first that decides the claim, or with the last of the plan."""
    plan, counts, stops = content["plan"], list[int](), [False]
    for batch in content["batches"]:
        counts = add_batch(counts, batch)
        stops.append(plan["stop_early"] and is_decided(counts, terms))
    return not any(stops[:-1]) and (stops[-1] or counts[0] >= plan["runs"])


def rebuild_pair(content: dict[str, Any], policy: Any, world: Any) -> tuple[Any, Any]:
    """Return the policy and the family, rebuilt unless they are given."""
    described = content["world"]
    if described["family"] == "callable":
        if world is None or (policy is None and not described["draws_policies"]):
            template = (
                "the worlds of this certificate were drawn by {told_of}; give that function, and the "
                "policy, to stagewise.verify_certificate"
            )
            raise InvalidProblem(ErrorCode.MISSING_VALUE, template, told_of=safe_repr(described["name"]))
        return policy, world
    if policy is None:
        if not isinstance(content["policy"]["settings"], dict):
            template = "{content} is not a policy of stagewise; give the policy to stagewise.verify_certificate"
            raise InvalidProblem(ErrorCode.MISSING_VALUE, template, content=content["policy"]["kind"])
        policy = decode_value(content["policy"])
    if world is None:
        drawn = (described.get("safe", 0), described.get("seed", 0), described.get("spread"))
        world = build_family(described["family"], build_world(described["world"]), *drawn)
    return policy, world


def choose_batches(content: dict[str, Any], fraction: float, seed: int | None) -> list[dict[str, Any]]:
    """Return the batches that are replayed, at least one."""
    if not 0.0 < fraction <= 1.0:
        rule = f"a share of the runs, above 0 and at most 1{suggest_percent(fraction)}"
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "replay_fraction", fraction, rule)
    batches = content["batches"]
    chance = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
    chosen = chance.choice(len(batches), size=max(1, round(fraction * len(batches))), replace=False)
    return [batches[i] for i in sorted(chosen.tolist())]


def find_differences(given: Any, expected: Any, near: float, more: bool = False, path: str = "it") -> Iterator[str]:
    """Yield the paths at which two JSON values differ: numbers by more than `near`, relative above 1.

    `more`: the expected value may have more keys than the given one.
    """
    if isinstance(expected, dict) and isinstance(given, dict):
        if not given.keys() <= expected.keys() or (not more and given.keys() != expected.keys()):
            yield path
        for key in given.keys() & expected.keys():
            yield from find_differences(given[key], expected[key], near, more, f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(given, list) and len(expected) == len(given):
        for i, (one, other) in enumerate(zip(given, expected, strict=True)):
            yield from find_differences(one, other, near, more, f"{path}.{i}")
    elif isinstance(expected, float) and isinstance(given, float | int) and not isinstance(given, bool):
        if not abs(given - expected) <= near * max(1.0, abs(expected)):
            yield path
    elif type(given) is not type(expected) or given != expected:
        yield path


def is_histogram_consistent(given: dict[str, Any], values: Floats, near: float) -> bool:
    """Say whether counts fit the values; a value within `near` of an edge may be on either side."""
    edges, below = np.array(given["edges"]), np.concatenate([[0], np.cumsum(given["counts"])])
    ordered = np.sort(values)
    least, most = np.searchsorted(ordered, edges - near, "left"), np.searchsorted(ordered, edges + near, "right")
    return bool(np.all((least <= below) & (below <= most)))


def find_impossible(content: dict[str, Any], played: Result, near: float) -> Iterator[str]:
    """Yield the sections that their own numbers, the totals of the batches or the played runs rule out."""
    runs, margins = content["violations"]["runs"], list(content["margins"].values())
    first, optimism, regret, _, near_optimal = (content[name] for name in AGGREGATE_SECTIONS)
    worst = np.min([batch["margin"] for batch in content["batches"]], axis=0).tolist()
    lows = [one["quantiles"]["0"] for one in margins]
    possible_by_section = {
        "first_violation": (first is None) == (content["violations"]["occurrences"] == 0),
        "optimism": optimism is None or optimism["runs"] <= min(runs, optimism["rounds"]),
        "regret": (regret["above"] or 0) <= runs,
        "margins": all(sum(one["counts"]) == runs for one in margins) and not any(find_differences(lows, worst, near)),
        "first_near_optimal_round": near_optimal["never"] <= runs
        and (near_optimal["quantiles"] is None) == (near_optimal["never"] == runs),
    }
    yield from (name for name, possible in possible_by_section.items() if not possible)
    yield from (
        name for name, cuts, values in iterate_quantiles(content, played) if not covers_values(cuts, values, near)
    )


def iterate_quantiles(content: dict[str, Any], played: Result) -> Iterator[tuple[str, dict[str, float] | None, Floats]]:
    """Yield the quantiles of each section, with the values of the played runs."""
    for name, cuts in (
        ("first_violation", content["first_violation"]),
        ("first_near_optimal_round", content["first_near_optimal_round"]["quantiles"]),
    ):
        rounds = get_column(played, name)
        yield name, cuts, rounds[rounds > 0]
    for one, values in zip(content["margins"].values(), get_column(played, "margin").T, strict=False):
        yield "margins", one["quantiles"], values
    curves = content["regret"]["quantiles"]
    for row, values in zip(zip(*curves.values(), strict=True), played.regret.T, strict=False):
        yield "regret", dict(zip(curves, row, strict=True)), values


def covers_values(cuts: dict[str, float] | None, values: Floats, near: float) -> bool:
    """Say whether quantiles increase and contain all values; None: there are no values."""
    if cuts is None:
        return values.size == 0
    ordered = [cuts[level] for level in sorted(cuts, key=float)]
    grow = all(one <= other + ROUNDING * max(1.0, abs(other)) for one, other in pairwise(ordered))
    room = near * max(1.0, abs(cuts["0"]), abs(cuts["1"]))
    return grow and bool(np.all((cuts["0"] - room <= values) & (values <= cuts["1"] + room)))
