"""Two percent are 0.02: who writes 2 is told so, and who means 2 may say so."""

from pathlib import Path

import pytest
from tests.cli.commands import GOOD, called, spec

ARMS = """
[simulation]
rounds = 20
[world]
kind = "arms"
reward = [0.0, 0.06]
cost = [0.0, 0.01]
[policy]
kind = "OPB"
arms = 2
threshold = { opt_out = 0.02 }
safe_action = { arm = 0, reward = 0.0, cost = 0.0 }
"""
PROBLEM = """
action_names = ["nothing", "offer"]
safe_name = "nothing"
[reward]
name = "click"
[limits.opt_out]
at_most = 0.02
safe_bound = 0.01
"""
WATCHED = ARMS.replace('"OPB"', '"UCB"')


@pytest.mark.parametrize(
    ("text", "old", "new", "share"),
    [
        (ARMS, "opt_out = 0.02", "opt_out = 2", "2 % is 0.02"),
        (WATCHED, "opt_out = 0.02", "opt_out = 2", "2 % is 0.02"),
        (ARMS, "arms = 2", "arms = 2\ndelta = 5", "5 % is 0.05"),
        (ARMS, "cost = [0.0, 0.01]", "cost = [0.0, 1.5]", "1.5 % is 0.015"),
        (ARMS, "cost = [0.0, 0.01]", "cost = { opt_out = [0.0, 1.5] }", "means of 'opt_out' lie in [0, 1.5]"),
        (ARMS, "reward = [0.0, 0.06]", "reward = [0.0, 6]", "means of 'reward' lie in [0, 6]; bernoulli needs"),
        (GOOD, "threshold = 0.3", "threshold = 30", "30 % is 0.3"),
    ],
)
def test_a_percentage_in_the_place_of_a_share_is_refused(
    text: str, old: str, new: str, share: str, tmp_path: Path
) -> None:
    assert old in text
    code, said = called("simulate", spec(tmp_path, text.replace(old, new)), "--out", tmp_path / "out", "--quiet")
    assert (code, share in said, said.count("\n")) == (2, True, 1), said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "share"),
    [
        ("at_most = 0.02", "at_most = 2", "2 % is 0.02"),
        ("safe_bound = 0.01", "safe_bound = 1.5", "1.5 % is 0.015"),
        ("[reward]", "delta = 5\n[reward]", "5 % is 0.05"),
    ],
)
def test_so_it_is_in_the_file_of_a_problem(old: str, new: str, share: str, tmp_path: Path) -> None:
    code, said = called("problem", spec(tmp_path, PROBLEM.replace(old, new, 1)))
    assert (code, share in said, said.count("\n")) == (2, True, 1), said


@pytest.mark.parametrize(
    ("option", "value", "share"),
    [("--delta", 5, "5 % is 0.05"), ("--confidence", 99.9, "99.9 % is 0.999")],
)
def test_so_it_is_in_an_option_of_certify(option: str, value: float, share: str, tmp_path: Path) -> None:
    words = ("certify", spec(tmp_path, ARMS), "--out", tmp_path / "out", "--runs", 20, "--quiet", option, value)
    code, said = called(*words)
    assert (code, share in said, said.count("\n")) == (2, True, 1), said


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("threshold = 0.3", "threshold = 2\nmean_cost_bound = 3"),  # costs that can go beyond 1
        WATCHED.replace("opt_out = 0.02 }", "opt_out = 2 }\nnoise = 0.1").replace(
            'kind = "arms"', 'kind = "arms"\noutcomes = "gaussian"'
        ),
        WATCHED.replace("opt_out = 0.02", "opt_out = 1.0"),
    ],
)
def test_a_limit_of_two_is_one_where_costs_go_beyond_one(text: str, tmp_path: Path) -> None:
    code, said = called("simulate", spec(tmp_path, text), "--out", tmp_path / "out", "--quiet")
    assert code == 0, said


def test_a_problem_with_outcomes_up_to_a_hundred_may_have_a_limit_of_two(tmp_path: Path) -> None:
    wide = PROBLEM.replace("at_most = 0.02", "at_most = 2\nhigh = 100")
    assert called("problem", spec(tmp_path, wide))[0] == 0
