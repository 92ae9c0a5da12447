"""Certificates forged as well as one can: whatever reaches the page or the verdict, the runs must say it too."""

import copy
import json
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.certified import FIXED, POLICY

import stagewise as sw
from stagewise.reports.evidence import ClaimTerms, add_batch, summarize_evidence
from stagewise.simulation.certify import build_terms
from stagewise.simulation.oracle import PolicyWorlds
from stagewise.simulation.verify import FaultCode, find_differences, rebuild_pair

ARMS = sw.ArmsWorld(reward=[0.1, 0.2, 0.4, 0.7], cost=[0.0, 0.4, 0.5, 0.2])
BOLD = sw.UCB(arms=4, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.3)
SUMMARY = ("verdict", "coverage_verdict", "violations", "coverage")

pytestmark = pytest.mark.long


def saved(content: dict[str, Any], folder: Path) -> Path:
    path = folder / "certificate.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def summed_up(content: dict[str, Any], terms: ClaimTerms) -> None:
    """Make the summary, the verdict and its grounds fit the totals of the batches."""
    batches = content["batches"]
    counts = reduce(add_batch, batches, [])
    said = summarize_evidence(counts, terms, complete=counts[0] == content["plan"]["runs"])
    content.update({name: said[name] for name in SUMMARY})
    for j, name in enumerate(terms.names[1:]):
        content["margins"][name]["quantiles"]["0"] = min(one["margin"][j] for one in batches)


@pytest.mark.parametrize("fraction", [1.0, 0.05])
def test_a_refuted_certificate_cannot_be_forged_into_a_supported_one(fraction: float, tmp_path: Path) -> None:
    content = sw.certify(BOLD, ARMS, rounds=6, runs=200, stop_early=False, progress=False).content
    assert content["verdict"] == "refuted"
    for batch in content["batches"]:
        batch.update(violating_runs=0, missing=[0, 0], margin=[0.05])
    summed_up(content, build_terms(PolicyWorlds(BOLD, ARMS), None, 0.999, 6, "cpu"))
    content["margins"]["cost"]["quantiles"] = dict.fromkeys(content["margins"]["cost"]["quantiles"], 0.05)
    content["first_violation"] = None
    assert content["verdict"] == "supported"
    path = saved(content, tmp_path)
    assert sw.SimulationCertificate.load(path).holds
    found = sw.verify_certificate(path, replay_fraction=fraction)
    assert not found.stands
    assert FaultCode.RUNS_DIFFER in {fault.code for fault in found.faults}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where every number, word and gap stands."""
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(entry, (*path, key))
    else:
        yield path


def changed(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 1.01 * value + 1e-3
    words = {"supported": "undecided", "refuted": "supported", "undecided": "supported", "at most": "at least"}
    return 1.0 if value is None else words.get(value, value + "x")


def with_change(content: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """Return a copy in which one leaf is another."""
    other = copy.deepcopy(content)
    place: Any = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = changed(place[path[-1]])
    return other


def stands(content: dict[str, Any], folder: Path) -> bool:
    """Say whether a certificate is read, and stands when all of its runs are played again."""
    try:
        return sw.verify_certificate(saved(content, folder), replay_fraction=1.0).stands
    except sw.StagewiseError:
        return False


@pytest.fixture(scope="module", params=["supported", "broken"])
def honest(request: pytest.FixtureRequest) -> tuple[dict[str, Any], ClaimTerms]:
    """Return a certificate of each kind, and what it claims."""
    policy, world = (POLICY, FIXED) if request.param == "supported" else (BOLD, ARMS)
    content = sw.certify(policy, world, rounds=6, runs=3, stop_early=False, progress=False).content
    return json.loads(json.dumps(content)), build_terms(PolicyWorlds(policy, world), None, 0.999, 6, "cpu")


def is_true(content: dict[str, Any]) -> bool:
    """Say whether an honest maker would get this very certificate of the policy, the world and the claim in it.

    A changed setting that no run depends on makes another certificate, and one that is as true.
    """
    policy, world = rebuild_pair(content, None, None)
    plan, claim = content["plan"], content["claim"]
    asked = {name: plan[name] for name in ("rounds", "runs", "seed", "stop_early", "backend")}
    told_of = {name: claim[name] for name in ("delta", "confidence")}
    again = sw.certify(policy, world, progress=False, **asked, **told_of).content
    again["made"] = content["made"]
    return not any(find_differences(content, json.loads(json.dumps(again)), 1e-12))


def test_no_leaf_can_be_another(honest: tuple[dict[str, Any], ClaimTerms], tmp_path: Path) -> None:
    content = honest[0]
    assert stands(content, tmp_path)
    for path in leaves(content):
        forged = with_change(content, path)
        assert path[0] == "made" or not stands(forged, tmp_path) or is_true(forged), path


def test_no_leaf_can_be_another_with_a_summary_that_fits(
    honest: tuple[dict[str, Any], ClaimTerms], tmp_path: Path
) -> None:
    content, terms = honest
    for path in leaves(content):
        if path[0] in ("made", *SUMMARY):
            continue
        forged = with_change(content, path)
        if path[0] == "claim":
            terms = ClaimTerms(**forged["claim"], names=terms.names, shares=terms.shares)
        try:
            summed_up(forged, terms)
        except (TypeError, ValueError, AttributeError):
            continue  # there is no such summary
        assert not stands(forged, tmp_path) or is_true(forged), path


def test_nothing_can_be_added_or_left_out(honest: tuple[dict[str, Any], ClaimTerms], tmp_path: Path) -> None:
    content = honest[0]
    tables = [path for path in branches(content) if path[:1] != ("made",)]
    for path in tables:
        more = copy.deepcopy(content)
        at(more, path)["seal"] = "certified by the authority"
        assert not stands(more, tmp_path), path
        for key in at(content, path):
            less = copy.deepcopy(content)
            del at(less, path)[key]
            if path[:1] not in (("policy",), ("world",)):  # a setting left out is the default, and is played
                assert not stands(less, tmp_path), (*path, key)


def branches(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where every table stands."""
    if isinstance(value, dict):
        yield path
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from branches(entry, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return what stands there."""
    for key in path:
        value = value[key]
    return value


def test_what_playing_again_cannot_show_is_marked_on_the_page(
    honest: tuple[dict[str, Any], ClaimTerms], tmp_path: Path
) -> None:
    content = copy.deepcopy(honest[0])
    content["made"].update(day="1999-12-31", machine="abacus")
    assert sw.verify_certificate(saved(content, tmp_path), replay_fraction=1.0).stands
    sw.SimulationCertificate.load(tmp_path).save(tmp_path)
    page = (tmp_path / "certificate.html").read_text(encoding="utf-8")
    told_only = page[page.index("Not verified by simulation") :]
    told_only = told_only[: told_only.index("</p>")]
    for words in ("1999-12-31", "abacus", "seed", "planned"):
        assert words in told_only


def test_runs_that_end_where_the_plan_does_not_do_not_stand(tmp_path: Path) -> None:
    terms = build_terms(PolicyWorlds(POLICY, FIXED), None, 0.999, 5, "cpu")
    content = sw.certify(POLICY, FIXED, rounds=5, runs=100, stop_early=False, progress=False).content
    content["batches"] = content["batches"][:10]
    for early in (False, True):
        content["plan"]["stop_early"] = early
        summed_up(content, terms)
        found = sw.verify_certificate(saved(content, tmp_path))
        assert FaultCode.END_DIFFERS in {fault.code for fault in found.faults}


def test_a_part_of_the_runs_says_what_it_leaves_open(tmp_path: Path) -> None:
    content = sw.certify(POLICY, FIXED, rounds=20, runs=80, stop_early=False, progress=False).content
    path = saved(content, tmp_path)
    assert sw.verify_certificate(path, replay_fraction=1.0).unconfirmed == ()
    assert "regret" in sw.verify_certificate(path, replay_fraction=0.1).unconfirmed


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["regret"]["quantiles"]["0.5"].__setitem__(3, -50.0),
        lambda c: c["regret"]["quantiles"].update({"1": [0.0] * 20}),
        lambda c: c["regret"].update(above=81),
        lambda c: c["margins"]["cost"]["counts"].__setitem__(0, 7),
        lambda c: c["margins"]["cost"]["quantiles"].update({"1": -5.0}),
        lambda c: c["margins"]["cost"]["quantiles"].update({"0": 0.2, "0.01": 0.2}),
        lambda c: c.update(first_violation=dict.fromkeys(c["margins"]["cost"]["quantiles"], 1.0)),
        lambda c: c["first_near_optimal_round"].update(never=81),
        lambda c: c["optimism"].update(runs=81, rounds=81),
        lambda c: c["regret"].update(theorem="arms"),
        lambda c: c["regret"].update(failure=0.0),
        lambda c: c["regret"]["rounds"].__setitem__(0, 2),
    ],
)
def test_what_is_left_open_must_be_possible(change: Any, tmp_path: Path) -> None:
    content = sw.certify(POLICY, FIXED, rounds=20, runs=80, stop_early=False, progress=False).content
    assert sw.verify_certificate(saved(content, tmp_path), replay_fraction=0.1).stands
    change(content)
    assert not sw.verify_certificate(saved(content, tmp_path), replay_fraction=0.1).stands
