"""One learner, two deciders: three processes, and queues between them (docs/how-to/guide.md walks through this file).

python examples/replicas.py
"""

import multiprocessing
from typing import Any

import numpy as np

import stagewise as sw

MESSAGES = ["nothing", "digest", "offer"]
CLICKS, OPT_OUTS = [0.0, 0.06, 0.12], [0.0, 0.002, 0.012]  # the truth, which only the users know
POLICY = sw.OPB(
    arms=len(MESSAGES),
    safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0),
    threshold={"opt_out": 0.02},
    interval="kl",
    separate_models=True,  # clicks are learned when they come, long before it is known who left
)


def decider(name: str, snapshot: bytes, users: int, learner: Any, answers: Any) -> None:
    """Serve users by the newest snapshot there is."""
    replica = sw.Replica(sw.Snapshot.from_bytes(snapshot), name=name)
    people, outcomes = np.random.default_rng(len(name)), []
    for user in range(1, users + 1):
        decision = replica.decide(sw.ArmSet(len(MESSAGES)))
        learner.put((name, "decision", decision.to_dict()))
        answers.get()  # the learner has registered it; only now the message is sent
        outcomes.append((decision.id, "reward", bool(people.random() < CLICKS[decision.action])))
        outcomes.append((decision.id, "opt_out", bool(people.random() < OPT_OUTS[decision.action])))
        if user % 50 == 0 or user == users:
            for index in people.permutation(len(outcomes)):  # in any order, each signal by itself
                learner.put((name, "outcome", outcomes[index]))
            outcomes.clear()
            learner.put((name, "snapshot", None))
            replica.update(sw.Snapshot.from_bytes(answers.get()))
    learner.put((name, "done", None))


def serve(users: int = 2000, names: tuple[str, ...] = ("pod-1", "pod-22")) -> sw.Agent:
    """Learn from all deciders until each has served its users; return the learner."""
    agent, processes = sw.Agent(POLICY, seed=7, name="campaign"), multiprocessing.get_context("spawn")
    inbox, answers = processes.Queue(), {name: processes.Queue() for name in names}
    first = bytes(agent.replica_snapshot())
    pods = [processes.Process(target=decider, args=(name, first, users, inbox, answers[name])) for name in names]
    for pod in pods:
        pod.start()
    working = len(pods)
    while working:
        name, kind, content = inbox.get(timeout=300)
        if kind == "decision":
            agent.register_decision(content)  # a service writes it to its log here
            answers[name].put("registered")
        elif kind == "outcome":
            id_, signal, value = content
            agent.learn(id_, **{signal: value})
        elif kind == "snapshot":
            answers[name].put(bytes(agent.replica_snapshot()))
        else:
            working -= 1
    for pod in pods:
        pod.join()
    return agent


if __name__ == "__main__":
    learner = serve()
    decision = learner.decide(sw.ArmSet(len(MESSAGES)))
    print(f"{decision.round} decisions, {learner.replica_snapshot().version} changes of what is known")
    for message, share in zip([*MESSAGES, "nothing"], decision.probabilities, strict=True):
        if share > 0.0:
            print(f"{message}: {share:.0%}")
    print(f"opt-outs at most {decision.pessimistic_cost[0]:.4f}")
