"""Every policy certified on the paper's problems, beside those that must fail, with an index page."""

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.experiments.instances import at_zero, shifted, slug
from stagewise.models.kernel import LinearKernel
from stagewise.policies.always_safe import AlwaysSafe
from stagewise.policies.doslb import DOSLB
from stagewise.policies.kernel_oplb import KernelOPLB
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.linucb import LinUCB
from stagewise.policies.opb import OPB
from stagewise.policies.oplb import OPLB
from stagewise.policies.opnlb import OPNLB
from stagewise.policies.safe_lts import SafeLTS
from stagewise.policies.ucb import UCB
from stagewise.problem.ellipsoid import Ball
from stagewise.problem.safe_action import SafeAction
from stagewise.reports.certificate import Certificate
from stagewise.reports.certificate_page import STYLE
from stagewise.reports.certificate_words import headline
from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.reports.files import write_text
from stagewise.simulation.certify import certify
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.linear import LinearWorld
from stagewise.worlds.table import TableWorld

D, ROUNDS = 10, 10_000
LIMIT: dict[str, Any] = {"safe_action": at_zero(D), "threshold": 0.5}
ARMS = ArmsWorld(reward=[0.1, 0.2, 0.4, 0.7], cost=[0.0, 0.4, 0.5, 0.2])
ARM_LIMIT: dict[str, Any] = {"safe_action": SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.3}
ARM: dict[str, Any] = {"arms": 4, **ARM_LIMIT}
# the truth, and all that is made of it by exchanging two arms other than the safe one
REWARDS = [[0.1, 0.2, 0.4, 0.7], [0.1, 0.4, 0.2, 0.7], [0.1, 0.7, 0.4, 0.2], [0.1, 0.2, 0.7, 0.4]]
COSTS = [[0.0, 0.4, 0.5, 0.2], [0.0, 0.5, 0.4, 0.2], [0.0, 0.2, 0.5, 0.4], [0.0, 0.4, 0.2, 0.5]]
RAYS = shifted(D)
ENDS = np.vstack([np.zeros(D), RAYS.actions.features])
LISTED = TableWorld(features=ENDS, reward=ENDS @ RAYS.parameters[0], cost=ENDS @ RAYS.parameters[1], noise=1.0)
BALL = LinearWorld(theta=RAYS.parameters[0], mu=RAYS.parameters[1], actions=Ball(1.0), noise=1.0)


@dataclass(frozen=True)
class Case:
    """A policy in a world, and what a sound test must say of it."""

    name: str
    policy: Any
    world: Any
    expected: str = SUPPORTED
    most: tuple[int, int] = (ROUNDS, 10**9)  # rounds and runs at most: by hand a round takes a thousand times as long


BY_HAND = (50, 1000)
SMALL: dict[str, Any] = {**LIMIT, "noise": 0.1, "parameter_bound": 0.1, "watch": False}  # the watch would save it
NOISY = shifted(D, noise=10.0)
CASES = (
    Case("LC-LUCB", LCLUCB(**LIMIT, noise=1.0), RAYS),
    Case("ROFUL", ROFUL(**LIMIT, noise=1.0), RAYS),
    Case("Safe-LTS", SafeLTS(**LIMIT, noise=1.0), RAYS),
    Case("OPLB", OPLB(**LIMIT, noise=1.0), RAYS),
    Case("OPLB, directional", OPLB(**LIMIT, noise=1.0, optimism="directional"), RAYS),
    Case("OPLB, cone programs", OPLB(**LIMIT, noise=1.0, method="socp"), RAYS, most=BY_HAND),
    Case("ROFUL in the unit ball", ROFUL(**LIMIT, noise=1.0), BALL, most=BY_HAND),
    Case("KernelOPLB", KernelOPLB(**LIMIT, kernel=LinearKernel(), norm_bound=1.0, noise=1.0), LISTED),
    Case("OPB, hoeffding", OPB(**ARM), ARMS),
    Case("OPB, kl", OPB(**ARM, radius="kl"), ARMS),
    Case("OPB, bernstein", OPB(**ARM, radius="bernstein"), ARMS),
    Case("OPNLB", OPNLB(**ARM_LIMIT, reward_class=REWARDS, cost_class=COSTS), ARMS, most=BY_HAND),
    Case("OPNLB, rows", OPNLB(**ARM_LIMIT, reward_class=REWARDS, cost_class=COSTS, method="rows"), ARMS, most=BY_HAND),
    Case("OPB, paper", OPB(**ARM, radius="paper", horizon=ROUNDS), ARMS),
    Case("AlwaysSafe", AlwaysSafe(**LIMIT), RAYS),
    Case("LinUCB", LinUCB(**LIMIT, noise=1.0), RAYS, REFUTED),
    Case("UCB", UCB(**ARM), ARMS, REFUTED),
    Case("DOSLB", DOSLB(**LIMIT, noise=1.0), RAYS, REFUTED),
    Case("LC-LUCB, radius ten times too small", LCLUCB(**SMALL), RAYS, REFUTED),
    Case("LC-LUCB, world ten times as noisy", LCLUCB(**LIMIT, noise=1.0, watch=False), NOISY, REFUTED),
)


class Outcome(NamedTuple):
    """What came out, and what had to."""

    name: str
    expected: str
    verdict: str
    as_expected: bool


def certify_all(
    out: Path,
    *,
    runs: int,
    rounds: int = ROUNDS,
    confidence: float = 0.999,
    executor: Any = None,
    progress: bool = True,
) -> list[Outcome]:
    """Certify every case into a folder of its own, and write index.html and index.json."""
    certificates = {
        case.name: certify(
            case.policy,
            case.world,
            rounds=min(rounds, case.most[0]),
            runs=min(runs, case.most[1]),
            confidence=confidence,
            executor=executor,
            progress=progress,
            out=out / slug(case.name),
        )
        for case in CASES
    }
    outcomes = [outcome_of(case, certificates[case.name]) for case in CASES]
    write_text(out / "index.html", index(outcomes, certificates))
    write_text(out / "index.json", json.dumps([one._asdict() for one in outcomes], indent=1) + "\n")
    return outcomes


def outcome_of(case: Case, certificate: Certificate) -> Outcome:
    """Return whether the verdict is the one that is due."""
    right = certificate.holds if case.expected == SUPPORTED else certificate.verdict == case.expected
    return Outcome(case.name, case.expected, certificate.verdict, right)


def index(outcomes: list[Outcome], certificates: dict[str, Certificate]) -> str:
    """Return the page that leads to all certificates."""
    rows = "".join(
        f"<tr><td><a href='{slug(one.name)}/certificate.html'>{html.escape(one.name)}</a></td>"
        f"<td class={one.verdict}>{one.verdict}</td><td>{one.expected}</td>"
        f"<td>{html.escape(headline(certificates[one.name].content))}</td></tr>"
        for one in outcomes
    )
    wrong = sum(not one.as_expected for one in outcomes)
    words = "All verdicts are as they must be." if not wrong else f"{wrong} verdicts are not as they must be."
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'><link rel=icon href='data:,'>"
        f"<title>stagewise: safety certificates</title><style>{STYLE}</style></head><body>"
        "<h1>Safety certificates</h1><p>Does a policy keep its limits while it learns? Each page says what was "
        "promised, assumed, found and not tested. Those expected to be refuted are controls: a test that they "
        f"passed would prove nothing. <b>{words}</b></p><div class=scroll><table>"
        f"<tr><th>policy<th>verdict<th>expected<th>found</tr>{rows}"
        "</table></div></body></html>\n"
    )
