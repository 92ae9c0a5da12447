"""Limits on rates that move: every way in and out of an agent knows the times, and bounds age when deciding."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.problem.timing import DAY

START = 1.7e9
COUNTRIES = ("NZ", "AU")


def build(drift: Any = "0.005/30d", **others: Any) -> sw.Problem:
    limit = sw.Limit(0.02, safe_bound=0.001, drift=drift, **others)
    return sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"), limits={"opt_out": limit}
    )


def make_log(rows: int = 3000, per_day: int = 100, by: bool = False) -> dict[str, list[Any]]:
    """Return a log of thirty days, in which the offer has opt-outs of .4 %."""
    rng = np.random.default_rng(4)
    log: dict[str, list[Any]] = {
        "action": ["offer"] * rows,
        "click": (rng.random(rows) < 0.2).tolist(),
        "opt_out": (rng.random(rows) < 0.004).tolist(),
        "at": [START + row * DAY / per_day for row in range(rows)],
    }
    return log | ({"country": [COUNTRIES[row % 2] for row in range(rows)]} if by else {})


END = START + 30 * DAY


def read_bound(agent: Any, now: float, context: Any = None) -> float:
    """Return the upper bound of the offer's opt-outs."""
    memory = agent.state.memory if hasattr(agent, "state") else agent
    policy = agent.policy
    encoded = policy.problem.encode_context(context).at(now)
    bounds = policy.rounds.play(memory, policy.rows_for(encoded), encoded.get_eligible(2), (0, 0, 0)).workspace.bounds
    return float(bounds[1, 0, 1] + bounds[1, 1, 1])


@pytest.mark.parametrize("drift", ["0.005/30d", ("0.01", "30d"), "jumps"])
def test_a_bound_ages_as_declared_and_the_agent_acts_on_it(drift: Any) -> None:
    agent = sw.Agent(build(drift), seed=1)
    agent.learn_log_frame(make_log())
    now, later = read_bound(agent, END), read_bound(agent, END + 60 * DAY)
    grown = {"0.005/30d": 0.01, "jumps": 0.0}.get(drift if isinstance(drift, str) else "")
    if grown is None:
        assert 0.0 < later - now <= 0.03 + 1e-12
    else:
        assert later - now == pytest.approx(grown, abs=1e-9)
    assert now < 0.02 or drift != "jumps"
    shares = [agent.decide(propose="offer", now=at).probabilities["offer"] for at in (END, END + 60 * DAY)]
    assert shares[0] >= shares[1] > 0.0
    assert (shares[0] > shares[1]) == (later > max(now, 0.02))


@pytest.mark.parametrize("noise", [None, 0.05])
def test_the_bound_of_one_by_one_a_log_a_file_and_a_snapshot_is_the_same(tmp_path: Path, noise: float | None) -> None:
    log, problem = make_log(600), build(**({} if noise is None else {"noise": noise, "low": 0.0, "high": 1.0}))
    one, whole = sw.Agent(problem, seed=1), sw.Agent(problem, seed=1)
    for row in range(600):
        now = log["at"][row]
        one.learn(one.decide(propose="nothing", now=now), click=False, opt_out=False, now=now)
    nothing = {name: ["nothing" if name == "action" else False] * 600 for name in ("action", "click", "opt_out")}
    whole.learn_log_frame({**nothing, "at": log["at"]})
    assert one.state.memory.tobytes() == whole.state.memory.tobytes()
    whole.learn_log_frame(log, context={"at": "at"})
    whole.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    replica = sw.Replica(whole.replica_snapshot(), name="pod")
    late = END + 10 * DAY
    decided = [agent.decide(propose="offer", now=late) for agent in (whole, loaded, replica)]
    whole.learn(decided[0], click=True, opt_out=False)
    assert {str(one.pessimistic_cost) for one in decided} == {str(decided[0].pessimistic_cost)}
    assert decided[2].probabilities == decided[0].probabilities
    fresh = replica.decide(propose="offer", now=START + 6 * DAY)
    assert fresh.probabilities["offer"] > decided[2].probabilities["offer"]  # a stale snapshot ages by itself
    whole.register_decision(decided[2].to_dict(), now=late)
    whole.learn(decided[2].id, click=True, opt_out=False)
    assert whole.state.memory.tobytes() != loaded.state.memory.tobytes()


def test_late_outcomes_are_as_old_as_their_decisions() -> None:
    prompt, late = (sw.Agent(build(window="7d"), seed=2) for _ in range(2))
    pending = []
    for row in range(400):
        now = START + row * DAY / 100
        prompt.learn(prompt.decide(now=now, propose="offer"), click=False, opt_out=False, now=now)
        pending.append(late.decide(now=now, propose="nothing"))
    for decision in pending:
        late.learn(decision, click=False, opt_out=False, now=START + 6 * DAY)
    blocks = [list(agent.policy.rounds.iter_blocks(agent.state.memory))[1][1] for agent in (prompt, late)]
    assert blocks[0] == blocks[1]
    assert late.pending_count == 0
    memory = late.state.memory
    assert START + 4 * DAY - DAY / 100 in memory  # the time of the last decision, not of its outcome
    assert START + 6 * DAY not in memory


def test_every_group_has_epochs_of_its_own_and_memory_grows_with_them() -> None:
    agent = sw.Agent(build(by="country"), seed=1)
    agent.learn_log_frame(make_log(by=True))
    known, unknown = (read_bound(agent, END, {"country": country}) for country in ("NZ", "FR"))
    assert known < 0.1 < unknown == 1.0
    for number in range(20):
        agent.learn(agent.decide({"country": f"C{number}"}, now=END), click=False, opt_out=False)
    assert read_bound(agent, END, {"country": "NZ"}) == known
    agent.add_action("sale")
    assert agent.decide({"country": "NZ"}, now=END).probabilities.keys() == {"nothing", "offer", "sale"}
    assert agent.report().rounds == 21


def test_logs_need_times_in_any_order_and_form() -> None:
    log = make_log(200)
    without = {name: column for name, column in log.items() if name != "at"}
    with pytest.raises(sw.InvalidActions) as error:
        sw.Agent(build()).learn_log_frame(without)
    assert error.value.code == ErrorCode.COLUMN_MISSING
    agents = [sw.Agent(build()) for _ in range(3)]
    agents[0].learn_log_frame(log)
    agents[1].learn_log_frame({name: column[::-1] for name, column in log.items()})
    stamps = np.array([round(at * 1e6) for at in log["at"]]).astype("datetime64[us]")
    agents[2].learn_log_frame({**without, "sent": stamps}, context={"at": "sent"})
    bounds = [read_bound(agent, END) for agent in agents]
    assert bounds[0] == bounds[1] == pytest.approx(bounds[2], abs=1e-9)
    for wrong in (float("nan"), 1e15, "yesterday"):
        with pytest.raises(sw.StagewiseError):
            sw.Agent(build()).learn_log_frame({**log, "at": [wrong, *log["at"][1:]]})


@pytest.mark.parametrize(
    ("drift", "code"),
    [
        ("much", ErrorCode.WRONG_TYPE),
        ("0.005/x", ErrorCode.INVALID_TIME),
        ("-1/30d", ErrorCode.WRONG_TYPE),
        ((0.1, "30d", 2), ErrorCode.WRONG_TYPE),
        (("x", "30d"), ErrorCode.WRONG_TYPE),
        ((-0.1, "30d"), ErrorCode.OUT_OF_RANGE),
        (3.0, ErrorCode.WRONG_TYPE),
    ],
)
def test_a_drift_that_cannot_be_read_is_refused(drift: Any, code: ErrorCode) -> None:
    with pytest.raises(sw.InvalidProblem) as error:
        build(drift)
    assert error.value.code == code


def test_only_rates_drift_and_no_drift_changes_nothing() -> None:
    for model in ("linear", "logistic"):
        with pytest.raises(sw.InvalidProblem) as error:
            build(model=model)
        assert error.value.code == ErrorCode.CONFLICTING_SETTINGS
    still, plain = build("0/30d"), build(None)
    assert not still.needs_times
    assert np.array_equal(still.policy().settings, plain.policy().settings)


def test_a_problem_with_drift_is_read_back() -> None:
    for drift in ("0.005/30d", ("0.01", "30d"), "jumps"):
        problem = build(drift)
        again = sw.Problem.from_dict(problem.to_dict())
        assert again.limits == problem.limits
        assert again.moduli == problem.moduli
        assert str(again.moduli["opt_out"]) in str(again)


def test_a_policy_without_an_agent_asks_for_the_time() -> None:
    policy = build().policy()
    with pytest.raises(sw.InvalidActions) as error:
        policy.decide(policy.start(), None)
    assert error.value.code == ErrorCode.TIME_MISSING


def test_a_jump_holds_back_one_action_which_recovers() -> None:
    limits = {"opt_out": sw.Limit(0.02, safe_bound=0.0, drift="jumps")}
    actions = ["nothing", "offer", "sale"]
    agent = sw.Agent(
        sw.Problem(action_names=actions, safe_name="nothing", reward=sw.Reward("click"), limits=limits), seed=1
    )
    rng, rows = np.random.default_rng(6), 6_000
    action = np.where(np.arange(rows) % 2, "sale", "offer")
    at = START + np.arange(rows) * DAY / 200

    def learn(rates: dict[str, float], first: float) -> None:
        opted = [bool(rng.random() < rates[name]) for name in action]
        agent.learn_log_frame({"action": action, "click": action == "sale", "opt_out": opted, "at": first + at})

    learn({"offer": 0.005, "sale": 0.005}, 0.0)
    assert agent.decide(propose="sale", now=START + 30 * DAY).probabilities["sale"] == 1.0
    learn({"offer": 0.005, "sale": 0.05}, 30 * DAY)
    now = START + 60 * DAY
    assert agent.decide(propose="offer", now=now).probabilities["offer"] == 1.0
    assert agent.decide(propose="sale", now=now).probabilities["sale"] < 0.5
    learn({"offer": 0.005, "sale": 0.005}, 60 * DAY)
    assert agent.decide(propose="sale", now=START + 90 * DAY).probabilities["sale"] == 1.0


def test_a_simulation_in_a_world_without_times_is_refused() -> None:
    world = sw.ContextWorld(reward=[[0.0], [0.1]], cost=[[[0.0], [0.004]]], features="plain")
    with pytest.raises(sw.InvalidProblem) as error:
        sw.simulate(build(), world, rounds=3, progress=False)
    assert error.value.code == ErrorCode.TIME_MISSING


def test_the_rows_that_the_doctor_leaves_to_learn_have_their_times() -> None:
    log = make_log(600)
    log["action"] = ["offer" if row % 2 else "nothing" for row in range(600)]
    agent = sw.Agent(build())
    agent.learn_log_frame(sw.check_log(log, build()).holdout.frame())
    assert read_bound(agent, END) < 0.2


DIVIDED = {"rates": {}, "segments": {"by": "country"}, "score": {"score": sw.RiskScore("risk", buckets=3)}}
DIVIDED["linear"] = {"model": "linear"}


@pytest.mark.parametrize("told", [END, None], ids=["a time", "all"])
@pytest.mark.parametrize("kind", DIVIDED)
@pytest.mark.parametrize("drift", ["0.05/1d", ("0.05", "10d"), "jumps"])
def test_outcomes_of_decisions_before_a_change_do_not_count_when_they_come_later(
    tmp_path: Path, drift: Any, kind: str, told: float | None
) -> None:
    """Somebody forgets the costs of an offer because it has changed; outcomes of the old one are still to come."""
    if (drift, kind) == ("jumps", "linear"):
        return
    settings = {"value": 0.4, "safe_bound": 0.0, "window": "7d", "drift": drift, **DIVIDED[kind]}
    problem = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"), delta=0.2,
        context={"x": (0.0, 1.0)} if kind == "linear" else {}, limits={"opt_out": sw.Limit(**settings)},
    )  # fmt: skip
    user = {"linear": {"x": 0.5}, "segments": {"country": "NZ"}, "score": {"risk": 0.5}}.get(kind, {})
    agent, count = sw.Agent(problem, seed=1), 100
    users = {"user_id": list(range(count)), **{name: [value] * count for name, value in user.items()}}
    users["proposed"] = ["offer"] * count

    def decide(day: float) -> Any:
        ids = agent.decide_frame(users, run=f"{day}", propose="proposed", now=END + day * DAY)["decision_id"]
        return {"decision_id": ids, "click": np.zeros(count), "opt_out": np.zeros(count)}

    def share(day: float) -> float:
        replica = sw.Replica(agent.replica_snapshot(), name="reader")
        return float(replica.decide(user or None, propose="offer", now=END + day * DAY).probabilities["offer"])

    before = [decide(day) for day in (-3.0, -2.0, -1.0)]
    agent.forget_costs("offer", before=told)
    first, one = share(0.0), sw.Agent.load(save(agent, tmp_path))
    for outcomes in before:
        agent.learn_outcomes(outcomes, now=END)
        for id_ in outcomes["decision_id"]:
            one.learn(id_, click=0.0, opt_out=0.0, now=END)
    assert agent.state.memory.tobytes() == one.state.memory.tobytes()
    assert share(0.0) == first < 0.7
    for day in range(1, 6):  # outcomes of the new offer count
        agent.learn_outcomes(decide(float(day)), now=END + day * DAY)
    assert share(5.0) > first


def save(agent: sw.Agent, folder: Path) -> Path:
    agent.save(folder / "agent.json")
    return folder / "agent.json"
