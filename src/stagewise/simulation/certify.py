"""Certificates: audited runs in batches, stopped once the claim is decided, equal on any executor."""

import os
import shutil
import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.paths import parse_path
from stagewise.policies.policy import EVERY, NOTHING, REWARD
from stagewise.policies.settings import check_probability
from stagewise.problem.checks import check_bool, check_number
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import suggest_percent
from stagewise.reports.certificate import SimulationCertificate
from stagewise.reports.evidence import (
    ClaimTerms,
    add_batch,
    compute_totals,
    is_decided,
    summarize_evidence,
    summarize_runs,
)
from stagewise.reports.guarantee import RegretTheorem, check_assumptions, compute_regret_bound
from stagewise.reports.output_files import check_folder
from stagewise.reports.result import Result, merge_results
from stagewise.simulation.executors import Workers
from stagewise.simulation.oracle import Family, PolicyWorlds, build_oracle
from stagewise.simulation.plan import (
    PLAN_KEYS,
    Folder,
    check_count,
    check_memory,
    describe_machine,
    describe_policy,
    get_versions,
)
from stagewise.simulation.run import RunSettings, compile_loop, compute_recorded_rounds, play_run
from stagewise.simulation.simulate import Backend, Batch, Job, build_job, open_workers, resolve_cuda
from stagewise.worlds.world_families import get_world_kind

POINTS = 20  # of the regret curves
DEVICE_BATCH = 2**15  # runs that a GPU plays at once
MAX_TITLE_LENGTH = 200  # letters of a name
RUNS_PER_SAMPLE = 50  # of so many runs one is measured for closeness
MAX_SAMPLED_ROUNDS = {"cpu": 2_000_000, "python": 2_000}  # in all: a second or a few
TOLERANCE = 1e-9  # what is left counts as nothing, relative to a limit above 1


def certify(
    policy: Any,
    world: Family,
    *,
    rounds: int,
    runs: int = 100_000,
    seed: int = 0,
    delta: float | None = None,
    confidence: float = 0.999,
    stop_early: bool = True,
    backend: Backend = "auto",
    executor: Workers = None,
    progress: bool = True,
    out: str | Path | None = None,
    name: str | None = None,
) -> SimulationCertificate:
    """Test the claim "a run of `rounds` rounds violates a limit with probability at most δ" on audited runs.

    Args:
        policy: As for `simulate`.
        world: As for `simulate`.
        rounds: The number of rounds of a run.
        runs: The largest number of runs.
        seed: The seed.
        delta: δ; the policy's own by default.
        confidence: The confidence of every statement.
        stop_early: Stop once the claim and the intervals it depends on are decided, or the claim is refuted, by
            anytime-valid intervals (docs/how-to/certify.md).
        backend: As for `simulate`.
        executor: As for `simulate`.
        progress: As for `simulate`.
        out: A folder for certificate.json and certificate.html. Finished batches are saved there until then, so the
            same call continues where it was interrupted.
        name: The title of the page, such as the campaign.

    Returns:
        The certificate.

    Raises:
        InvalidProblem: The policy has no limits, does not fit the world, or an argument is invalid.
        InvalidFile: The folder cannot be used.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> world = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5])
        >>> certify(policy, world, rounds=5, runs=4, progress=False).content["plan"]["runs"]
        4
    """
    folder, title = None if out is None else parse_path(out, "out"), None if name is None else check_title(name)
    max_runs, shows = check_count(runs, "runs"), check_bool(progress, "progress")
    stops = check_bool(stop_early, "stop_early")
    level = check_number(confidence, "confidence")
    if not 0.0 < level < 1.0:
        rule = "strictly between 0 and 1, since no test is certain" + (suggest_percent(level) if level > 1.0 else "")
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "confidence", level, rule)
    backend, executor = resolve_cuda(backend, executor)
    job = build_audited_job(policy, world, rounds, seed, backend, folder)
    settings = job.settings
    terms = build_terms(job.pairs, delta, level, settings.rounds, settings.backend)
    plan = build_plan(settings.rounds, max_runs, settings.seed, stops, settings.backend)
    if not stops:
        check_memory(max_runs, POINTS, job.pairs(0)[1].costs)
    compiling = time.perf_counter()
    compile_loop(job.pairs, settings, 0)
    start = time.perf_counter()
    with open_workers(executor, shows, -(-max_runs // plan["batch"]), max_runs, settings.rounds, False) as finished:
        parts, batches = play_until_clear(job, plan, terms, finished)
    result = merge_results(parts)
    content = build_content(job.pairs, plan, terms, batches, result)
    content["closeness"] = measure_closeness(job.pairs, plan, len(result.runs))
    made = {
        **({} if title is None else {"name": title}),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": get_versions(),
        "machine": describe_machine(),
        "compile_seconds": round(start - compiling, 1),
        "seconds": round(time.perf_counter() - start, 1),
    }
    certificate = SimulationCertificate({**content, "made": made})
    if folder is not None:
        certificate.save(folder)
    if job.folder.path is not None and job.folder.path.exists():
        shutil.rmtree(job.folder.path)
    return certificate


def check_title(name: Any) -> str:
    """Return the title of a certificate, or raise."""
    if not isinstance(name, str) or not 0 < len(name.strip()) <= MAX_TITLE_LENGTH:
        rule = f"one line of at most {MAX_TITLE_LENGTH} characters"
        raise InvalidProblem.must_be(ErrorCode.INVALID_NAME, "name", name, rule)
    return " ".join(name.split())


def build_audited_job(policy: Any, world: Family, rounds: Any, seed: Any, backend: Any, out: Path | None = None) -> Job:
    """Return the runs of a certificate; batches are saved below `out` if the policy and the world can be described."""
    job = build_job(policy, world, rounds=rounds, seed=seed, record_points=POINTS, backend=backend, audit=True)
    folder = None if out is None else check_folder(out)  # before hours of play, not after
    kind = job.pairs.description().get("world", {}).get("kind")  # None if a function draws the worlds
    is_described = get_world_kind(kind) is not None and isinstance(job.plan["policy"]["settings"], dict)
    if folder is None or not is_described:
        return job
    return job._replace(folder=Folder(folder / "batches", job.plan, (*PLAN_KEYS, "backend", "versions")))


def build_plan(rounds: int, runs: int, seed: int, stop_early: bool, backend: str) -> dict[str, Any]:
    plan = {"rounds": rounds, "runs": runs, "seed": seed, "batch": compute_batch_size(rounds, runs, backend)}
    return {**plan, "stop_early": stop_early, "backend": backend, "points": POINTS}


def compute_batch_size(rounds: int, runs: int, backend: str) -> int:
    """Return the runs of a batch: a fortieth of all, at most 1000 or a few seconds of work; more on a GPU."""
    if backend == "cuda":
        return min(DEVICE_BATCH, runs)
    return max(1, min(1000, -(-runs // 40), 20_000_000 // rounds))


def play_until_clear(
    job: Job, plan: dict[str, Any], terms: ClaimTerms, finished: Callable[[dict[int, Batch]], dict[int, Result]]
) -> tuple[list[Result], list[dict[str, Any]]]:
    """Play batches until the claim is decided; return them and their totals.

    Batches are submitted in waves, each as large as all before it, and evaluated in the order of their runs; batches
    beyond the decision are dropped, so the number of workers does not change the certificate.
    """
    size, last = plan["batch"], plan["runs"]
    starts, parts, batches, counts = range(0, last, size), list[Result](), list[dict[str, Any]](), list[int]()
    while len(parts) < len(starts):
        wave = starts[len(parts) : len(parts) + max(len(parts), os.cpu_count() or 1)]
        for part in finished({start: Batch(job, range(start, min(start + size, last))) for start in wave}).values():
            parts.append(part)
            batches.append(compute_totals(part))
            counts = add_batch(counts, batches[-1])
            if plan["stop_early"] and is_decided(counts, terms):
                return parts, batches
    return parts, batches


def build_content(
    pairs: PolicyWorlds, plan: dict[str, Any], terms: ClaimTerms, batches: list[dict[str, Any]], result: Result | None
) -> dict[str, Any]:
    """Return the content of a certificate that depends only on its runs.

    Without the result of the runs, only what follows from their totals, and the theorem that bounds their regret.
    """
    counts, ends = reduce(add_batch, batches, list[int]()), compute_recorded_rounds(plan["rounds"], POINTS)
    bound = compute_regret_bound(*pairs(0), ends)
    theorem, failure = (bound, None) if isinstance(bound, RegretTheorem) else (bound.theorem, bound.failure)
    summary: dict[str, Any] = (
        {"regret": {"rounds": ends.tolist()}} if result is None else summarize_runs(result, terms.names[1:])
    )
    summary["regret"] |= {"theorem": str(theorem), "failure": failure}
    evidence = summarize_evidence(counts, terms, complete=counts[0] == plan["runs"])
    return {**evidence, **summary, **describe_setting(pairs, plan), "batches": batches}


def build_terms(pairs: PolicyWorlds, delta: float | None, confidence: float, rounds: int, backend: str) -> ClaimTerms:
    """Return the claim about run 0's policy; the python backend has no intervals."""
    policy, world = pairs(0)
    limits = build_oracle(policy, world).thresholds
    signals = 1 + limits.values.size
    if signals == 1:
        name = type(policy).__name__
        raise InvalidProblem(
            ErrorCode.MISSING_VALUE, "{name} has no threshold, so there is nothing to certify", name=name
        )
    claimed = check_probability(getattr(policy, "delta", 0.05) if delta is None else delta, "delta")
    shares = (None,) * signals if backend == "python" else get_interval_shares(policy, signals)
    return ClaimTerms(claimed, confidence, rounds, ("reward", *limits.names), shares)


def get_interval_shares(policy: Any, signals: int) -> tuple[float | None, ...]:
    """Return each signal's share of δ; None if it has no intervals.

    A policy of your own need not declare them: they follow from its `delta` and `split_delta`.
    """
    shares: Any = getattr(policy, "interval_shares", None)
    if shares is None:
        inferred = EVERY if hasattr(policy, "split_delta") else REWARD if hasattr(policy, "delta") else NOTHING
        learned = getattr(policy, "learns", inferred)
        count = 0 if learned == NOTHING else 1 if learned == REWARD else signals
        parts = signals if count > 1 and getattr(policy, "split_delta", True) else 1
        shares = (float(policy.delta) / parts,) * count if count else ()
    return (*shares, *([None] * (signals - len(shares))))


def describe_setting(pairs: PolicyWorlds, plan: dict[str, Any]) -> dict[str, Any]:
    policy, world = pairs(0)
    oracle = build_oracle(policy, world)
    limits = oracle.thresholds
    rows = zip(limits.names, limits.signs.tolist(), limits.values.tolist(), strict=True)
    promises: dict[str, str] = getattr(policy, "promises", {})
    return {
        "policy": describe_policy(policy),
        "thresholds": [
            {
                "name": name,
                "side": "at most" if sign > 0 else "at least",
                "value": value,
                **({"promise": str(promises[name])} if name in promises else {}),
            }
            for name, sign, value in rows
        ],
        "mixes": oracle.mixes,
        "assumptions": check_assumptions(policy, world),
        "world": pairs.description(),
        "plan": plan,
    }


def measure_closeness(pairs: PolicyWorlds, plan: dict[str, Any], played: int) -> dict[str, Any]:
    """Return, for the first runs, in how many rounds each limit was met exactly, and the mean slack.

    Runs of a GPU are replayed on the CPU, so that verification needs no GPU. They are audited only because the audited
    loop is compiled already.
    """
    backend = "python" if plan["backend"] == "python" else "cpu"
    rounds = min(plan["rounds"], MAX_SAMPLED_ROUNDS[backend])
    runs = max(1, min(played // RUNS_PER_SAMPLE, MAX_SAMPLED_ROUNDS[backend] // rounds))
    found = [
        measure_run(pairs, RunSettings(rounds, rounds, plan["seed"], backend, True, 0), run) for run in range(runs)
    ]
    met, left = (np.sum(column, axis=0) for column in zip(*found, strict=True))
    limits = [
        {"met": int(count), "left": float(total / (runs * rounds))} for count, total in zip(met, left, strict=True)
    ]
    return {"runs": runs, "rounds": runs * rounds, "limits": limits}


def measure_run(pairs: PolicyWorlds, settings: RunSettings, run: int) -> tuple[Any, Any]:
    """Return, for each limit, the rounds of a run that met it exactly, and the total slack."""
    policy, world = pairs(run)
    oracle = build_oracle(policy, world)
    limits = oracle.limits
    left = limits - play_run(policy, oracle, settings, run).cost[:, : limits.size]
    return (np.abs(left) <= TOLERANCE * np.maximum(1.0, np.abs(limits))).sum(axis=0), left.sum(axis=0)
