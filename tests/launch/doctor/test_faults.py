"""Every planted fault is found, by the check that is for it, and a log without one raises no alarm."""

import numpy as np
import pytest
from tests.chance import allowed
from tests.launch.doctor.jobs import ALSO, FAULTS, PROBLEM, SUBTLE, clean

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.doctor import ALPHA, CHECKS, TEST_COUNT
from stagewise.launch.doctor.findings import MESSAGES, Finding, FindingCode, select_most_severe
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.rate_checks import SELECTION_LEVEL

SUSPECTED = ("model_form", "segments")  # these note what a proposal would rely on, at its level
ROWS, MANY_ROWS = 8_000, 50_000  # the latter for faults that fewer rows do not show


def run(name, frame, problem) -> Finding:
    """Return the finding of one check."""
    return select_most_severe(CHECKS[name].run(LogProfile(Log.of(frame, problem)), ALPHA / TEST_COUNT))


def test_every_code_has_a_message():
    assert set(MESSAGES) == set(FindingCode)
    assert {message.check for message in MESSAGES.values()} == set(CHECKS)


@pytest.mark.parametrize(
    ("plant", "rows"),
    [
        pytest.param(plant, MANY_ROWS, id=plant.__name__, marks=pytest.mark.long)
        if plant in SUBTLE
        else pytest.param(plant, ROWS, id=plant.__name__)
        for plant in FAULTS
    ],
)
def test_a_planted_fault_is_found_by_its_check(plant, rows):
    frame, (name, verdict) = clean(1, rows), FAULTS[plant]
    found = run(name, frame, plant(frame, 1))
    assert (found.check, found.verdict) == (name, verdict), str(found)
    assert len(str(found)) < 430
    assert found.remedy


@pytest.mark.parametrize(("by", "verdict"), [(None, "ok"), ("country", "note")])
def test_a_limit_that_holds_in_every_segment_takes_rows_in_every_segment(by, verdict):
    rows = 4000
    log = {
        "action": ["today", "offer"] * (rows // 2),
        "country": ["NZ" if row < 40 else "AU" for row in range(rows)],
        "click": [0, 1] * (rows // 2),
        "opt_out": [0] * rows,
    }
    problem = sw.Problem(
        action_names=["today", "offer"],
        safe_name="today",
        reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.02, safe_bound=0.01, by=by)},
    )
    found = run("sample_size", log, problem)
    assert found.verdict == verdict
    if by is not None:
        assert found.code is FindingCode.TOO_FEW_ROWS
        names = ("name", "action", "column", "segment", "count", "other_cells")
        assert [found.details[name] for name in names] == ["opt_out", "offer", "country", "NZ", 20, 1]


@pytest.mark.slow
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_in_every_one_of_five_logs(plant):
    name, verdict = FAULTS[plant]
    for seed in range(10, 15):
        frame = clean(seed)
        found = sw.check_log(frame, plant(frame, seed))
        assert found[name].verdict == verdict, str(found)
        assert found.contradicted == (verdict == "contradicts" or plant in ALSO)
        assert plant not in ALSO or found[ALSO[plant]].verdict == "contradicts"


@pytest.mark.long
@pytest.mark.parametrize(
    ("logs", "rows"), [pytest.param(6, 8_000, id="few"), pytest.param(200, 50_000, id="many", marks=pytest.mark.slow)]
)
def test_logs_without_a_fault_raise_no_alarm(logs, rows):
    alarms, noted = [], []
    for seed in range(logs):
        found = sw.check_log(clean(1000 + seed, rows), PROBLEM)
        alarms += [str(finding) for finding in found.findings if finding.verdict == "contradicts"]
        noted += [finding.check for finding in found.findings if finding.verdict == "note"]
    assert set(noted) <= {"features", "sample_size", *SUSPECTED}
    assert sum(name in SUSPECTED for name in noted) <= allowed(logs, SELECTION_LEVEL)
    print(f"{len(alarms)} alarms in {logs} logs without a fault, {allowed(logs, ALPHA)} may be")  # pytest -rP
    assert len(alarms) <= allowed(logs, ALPHA), alarms


def test_the_same_log_at_a_looser_rate_would_raise_one():
    """The negative control: alarms are held back by alpha, and by nothing else."""
    frame = clean(3, 8_000)
    frame["click"] = np.where(np.arange(8_000) > 4_000, frame["click"], frame["click"] * (np.arange(8_000) % 2 > 0))
    strict, loose = sw.check_log(frame, PROBLEM, alpha=1e-9), sw.check_log(frame, PROBLEM, alpha=0.2)
    assert strict["drift"].verdict == "ok"
    assert loose["drift"].verdict == "contradicts"
