"""Script that `test_new_model.py` runs in a copy of the package with the logistic model; prints its results as JSON."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from stagewise.policies.rare import RareLCLUCB, RareOPLB

import stagewise as sw
from stagewise.simulation.compiled_run import can_play

DELTA, BOUND = 0.1, 2.5
MU = np.array([-2.2, 0.9, -0.6])  # the first feature is constant; ‖μ‖ = 2.45
THETA = np.array([0.2, 0.35, 0.25])
RNG = np.random.default_rng(7)
FEATURES = np.column_stack([np.ones(8), RNG.uniform(-0.8, 0.8, size=(8, 2))])
FEATURES[0] = 1.0, 0.0, 0.0


def rates(features: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-np.asarray(features) @ MU))


def logit(rate: float) -> float:
    return float(np.log(rate / (1.0 - rate)))


SAFE = float(rates(FEATURES[0]))
LIMIT = SAFE + 0.05
SETTINGS: dict[str, Any] = {"noise": 0.5, "delta": DELTA, "norm_bound": [1.0, BOUND]}
WORLD = sw.TableWorld(features=FEATURES, reward=FEATURES @ THETA, cost=rates(FEATURES), outcomes="bernoulli")


def oplb(**changed: Any) -> RareOPLB:
    safe = sw.SafeAction(features=FEATURES[0], reward=float(THETA[0]), cost=SAFE)
    return RareOPLB(**{"safe_action": safe, "threshold": LIMIT, "cost_bound": 1.0, **SETTINGS, **changed})


def compare_backends(rounds: int) -> dict[str, Any]:
    """Play rounds with an agent, in Python and in the compiled loop; save, load and resume."""
    options: dict[str, Any] = {"rounds": rounds, "audit": True, "progress": False}
    hand, loop = (sw.simulate(oplb(), WORLD, **options, backend=each) for each in ("python", "cpu"))
    agent, mixed = sw.Agent(oplb()), []
    for t in range(rounds):
        decision = agent.decide(sw.FiniteSet(FEATURES))
        mixed.append(float(decision.probabilities[:-1].sum()))
        outcome = WORLD.outcome(decision.action, sw.RandomKey(0, 0, t))
        agent.learn(decision, reward=outcome.reward, cost=outcome.cost)
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent.json")
        other = sw.Agent.load(Path(folder) / "agent.json")
    resumed = [each.decide(sw.FiniteSet(FEATURES)).probabilities.tolist() for each in (agent, other)]
    return {
        "can_play": can_play(oplb(), WORLD),
        "alike": bool(np.array_equal(hand.regret, loop.regret) and np.array_equal(hand.max_cost, loop.max_cost)),
        "resumed": resumed[0] == resumed[1],
        "mixed": max(mixed),
        "regret": loop.regret[0].tolist(),
    }


def on_rays(runs: int, rounds: int) -> dict[str, Any]:
    """Play LC-LUCB on rays; count runs with a violation and runs with a wrong bound."""
    safe = sw.SafeAction(features=FEATURES[0], reward=float(THETA[0]), cost=logit(SAFE))
    policy = RareLCLUCB(safe_action=safe, threshold=logit(LIMIT), cost_bound=None, **SETTINGS)
    rays, violations, missed, steps = sw.Rays(FEATURES[1:]), 0, 0, []
    for run in range(runs):
        state, bad, off = policy.start(), False, False
        for t in range(rounds):
            decision = policy.decide(state, rays, sw.RandomKey(0, run, t))
            rate = float(rates(decision.action))
            bad |= rate > LIMIT
            off |= logit(rate) > float(decision.pessimistic_cost[0]) + 1e-9
            steps.append(decision.step_size)
            chance = np.random.default_rng([run, t])
            reward = THETA @ decision.action + 0.1 * chance.normal()
            state = policy.learn(state, decision, sw.Outcome(float(reward), float(chance.uniform() < rate)))
        violations, missed = violations + int(bad), missed + int(off)
    return {"violations": violations, "missed": missed, "first": steps[0], "longest": max(steps)}


def count_coverage(runs: int, rounds: int, **changed: Any) -> dict[str, Any]:
    """Count the runs in which an interval of the cost ever missed its rate, and those that violated the limit."""
    options: dict[str, Any] = {"rounds": rounds, "runs": runs, "record_points": 4, "audit": True, "progress": False}
    played = sw.simulate(oplb(**changed), WORLD, **options)
    missed, reward = np.asarray((played.audit or {})["missed"]), played.reward.mean(axis=0)
    return {
        "missed": int((missed[:, 1] > 0).sum()),
        "violations": int((played.violations > 0).sum()),
        "reward": reward.tolist(),
    }


def certify(folder: str) -> dict[str, Any]:
    """Certify the policy and verify the certificate; then show costs that no rate within the bound explains."""
    sw.certify(oplb(), WORLD, rounds=5, runs=2, out=folder, progress=False)
    agent, cause = sw.Agent(oplb(cost_bound=0.16)), None
    for _ in range(50):
        decision = agent.decide(sw.FiniteSet(FEATURES))
        cause = cause or decision.reason_details
        agent.learn(decision, reward=0.2, cost=1.0)
    assert cause is not None
    return {"stands": sw.verify_certificate(folder).stands, "reason": cause.reason, "details": dict(cause.details)}


def watch_rates(before: float, after: float) -> dict[str, Any]:
    """Show an agent costs of one rate and then of another; return its health findings and its reason."""
    agent, chance = sw.Agent(oplb(cost_bound=None)), np.random.default_rng(3)
    for t in range(520):
        decision = agent.decide(sw.FiniteSet(FEATURES))
        rate = before if t < 256 else after  # the first drift test is after 256 outcomes
        agent.learn(decision, reward=float(THETA @ decision.action), cost=float(chance.uniform() < rate))
    health, last = agent.health(), agent.decide(sw.FiniteSet(FEATURES))
    found = health["drift of cost"]
    details = None if last.reason_details is None else dict(last.reason_details.details)
    result = {"verdict": found.verdict, "reason": last.reason, "details": details}
    return result | {"names": [finding.name for finding in health]}


def list_refusals() -> list[str]:
    """Return the error codes of unsupported settings and outcomes."""
    codes = []
    below = {"threshold": sw.AtLeast(0.01)}
    origin = {"safe_action": sw.SafeAction(features=np.zeros(3))}
    for call in (lambda: oplb(**below), lambda: oplb(**origin), lambda: oplb().values(0.0, 1.5)):
        try:
            call()
        except sw.StagewiseError as error:
            codes.append(error.code)
    return codes


if __name__ == "__main__":
    if sys.argv[1] == "interpreted":
        with tempfile.TemporaryDirectory() as folder:
            found = {
                "alike": compare_backends(25),
                "rays": on_rays(3, 40),
                "refused": list_refusals(),
                "certificate": certify(folder),
            }
            found["watched"] = {"moved": watch_rates(0.02, 0.9), "steady": watch_rates(SAFE, SAFE)}
    else:
        found = {"alike": compare_backends(100), "coverage": count_coverage(400, 2000)}
        found["wrong_bound"] = count_coverage(400, 1000, norm_bound=[1.0, 1.5])
    print(json.dumps(found))
