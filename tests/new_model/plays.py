"""What a copy of the package with the logistic model does; run by `test_new_model.py`, it prints what it found."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from stagewise.policies.rare import RareLCLUCB, RareOPLB

import stagewise as sw
from stagewise.simulation.compiled import plays

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
STATED: dict[str, Any] = {"noise": 0.5, "delta": DELTA, "norm_bound": [1.0, BOUND]}
WORLD = sw.TableWorld(features=FEATURES, reward=FEATURES @ THETA, cost=rates(FEATURES), outcomes="bernoulli")


def oplb(**changed: Any) -> RareOPLB:
    safe = sw.SafeAction(features=FEATURES[0], reward=float(THETA[0]), cost=SAFE)
    return RareOPLB(**{"safe_action": safe, "threshold": LIMIT, "cost_bound": 1.0, **STATED, **changed})


def alike(rounds: int) -> dict[str, Any]:
    """Play a few rounds by hand, in Python and in the loop; save, load and go on."""
    told: dict[str, Any] = {"rounds": rounds, "audit": True, "progress": False}
    hand, loop = (sw.simulate(oplb(), WORLD, **told, backend=each) for each in ("python", "cpu"))
    agent, mixed = sw.Agent(oplb()), []
    for t in range(rounds):
        decision = agent.decide(sw.Finite(FEATURES))
        mixed.append(float(decision.probabilities[:-1].sum()))
        outcome = WORLD.outcome(decision.action, sw.Draw(0, 0, t))
        agent.learn(decision, reward=outcome.reward, cost=outcome.cost)
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent.json")
        other = sw.Agent.load(Path(folder) / "agent.json")
    went_on = [each.decide(sw.Finite(FEATURES)).probabilities.tolist() for each in (agent, other)]
    return {
        "known": plays(oplb(), WORLD),
        "alike": bool(np.array_equal(hand.regret, loop.regret) and np.array_equal(hand.max_cost, loop.max_cost)),
        "went on": went_on[0] == went_on[1],
        "mixed": max(mixed),
        "regret": loop.regret[0].tolist(),
    }


def on_rays(runs: int, rounds: int) -> dict[str, Any]:
    """Play LC-LUCB on rays: the rate of what is played, round for round, and what was believed of it."""
    safe = sw.SafeAction(features=FEATURES[0], reward=float(THETA[0]), cost=logit(SAFE))
    policy = RareLCLUCB(safe_action=safe, threshold=logit(LIMIT), cost_bound=None, **STATED)
    rays, broken, missed, steps = sw.Rays(FEATURES[1:]), 0, 0, []
    for run in range(runs):
        state, bad, off = policy.start(), False, False
        for t in range(rounds):
            decision = policy.decide(state, rays, sw.Draw(0, run, t))
            rate = float(rates(decision.action))
            bad |= rate > LIMIT
            off |= logit(rate) > float(decision.dearest[0]) + 1e-9
            steps.append(decision.step)
            chance = np.random.default_rng([run, t])
            reward = THETA @ decision.action + 0.1 * chance.normal()
            state = policy.learn(state, decision, sw.Outcome(float(reward), float(chance.uniform() < rate)))
        broken, missed = broken + int(bad), missed + int(off)
    return {"broken": broken, "missed": missed, "first": steps[0], "longest": max(steps)}


def covered(runs: int, rounds: int, **changed: Any) -> dict[str, Any]:
    """Count the runs in which an interval of the cost ever missed its rate, and those that broke the limit."""
    told: dict[str, Any] = {"rounds": rounds, "runs": runs, "record": 4, "audit": True, "progress": False}
    played = sw.simulate(oplb(**changed), WORLD, **told)
    missed, reward = np.asarray((played.audit or {})["missed"]), played.reward.mean(axis=0)
    return {
        "missed": int((missed[:, 1] > 0).sum()),
        "broken": int((played.violations > 0).sum()),
        "reward": reward.tolist(),
    }


def vouched(folder: str) -> dict[str, Any]:
    """Certify it and verify that; then show it costs that no rate under its bound explains."""
    sw.certify(oplb(), WORLD, rounds=5, runs=2, out=folder, progress=False)
    agent, fallback = sw.Agent(oplb(cost_bound=0.16)), None
    for _ in range(50):
        decision = agent.decide(sw.Finite(FEATURES))
        fallback = fallback or decision.fallback
        agent.learn(decision, reward=0.2, cost=1.0)
    return {"stands": sw.verify(folder).stands, "disputed": fallback}


def watched(before: float, after: float) -> dict[str, Any]:
    """Show an agent rates of one size and then of another, at all its actions: what it finds, and what it says."""
    agent, chance = sw.Agent(oplb(cost_bound=None)), np.random.default_rng(3)
    for t in range(520):
        decision = agent.decide(sw.Finite(FEATURES))
        rate = before if t < 256 else after  # when the watch looks first
        agent.learn(decision, reward=float(THETA @ decision.action), cost=float(chance.uniform() < rate))
    health, last = agent.health(), agent.decide(sw.Finite(FEATURES))
    found = health["drift of cost"]
    told = {"verdict": found.verdict, "sentence": found.sentence, "fallback": last.fallback}
    return told | {"names": [finding.name for finding in health]}


def refusals() -> list[str]:
    """Return what is said of what the model cannot be."""
    said = []
    below = {"threshold": sw.AtLeast(0.01)}
    origin = {"safe_action": sw.SafeAction(features=np.zeros(3))}
    for call in (lambda: oplb(**below), lambda: oplb(**origin), lambda: oplb().values(0.0, 1.5)):
        try:
            call()
        except sw.StagewiseError as error:
            said.append(str(error))
    return said


if __name__ == "__main__":
    if sys.argv[1] == "plain":
        with tempfile.TemporaryDirectory() as folder:
            found = {"alike": alike(25), "rays": on_rays(3, 40), "refused": refusals(), "vouched": vouched(folder)}
            found["watched"] = {"moved": watched(0.02, 0.9), "steady": watched(SAFE, SAFE)}
    else:
        found = {"alike": alike(100), "covered": covered(400, 2000)}
        found["mistold"] = covered(400, 1000, norm_bound=[1.0, 1.5])
    print(json.dumps(found))
