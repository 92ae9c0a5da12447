"""A key or a word that no file has is refused with the one that was meant, in every TOML file that is read."""

from pathlib import Path

import pytest
from tests.cli.commands import GOOD, called, spec

PROBLEM = """
action_names = ["nothing", "offer"]
safe_name = "nothing"
[reward]
name = "click"
[limits.opt_out]
at_most = 0.2
"""
MEANT = [
    ("[simulation]", "[simulations]", "'simulation'"),
    ("[policy]", "[polcy]", "'policy'"),
    ("rounds = 20", "round = 20", "'rounds'"),
    ("rounds = 20", 'rounds = 20\nbackend = "cuda0"', "'cuda'"),
    ('kind = "linear"', 'kind = "Linear"', "'linear'"),
    ("cost = [0.8, 0.6]", "costs = [0.8, 0.6]", "'cost'"),
    ("cost = [0.8, 0.6]", 'cost = [0.8, 0.6]\noutcomes = "gausian"', "'gaussian'"),
    ('kind = "rays"', 'kind = "ray"', "'rays'"),
    ("features = [[1.0", "feature = [[1.0", "'features'"),
    ('kind = "LCLUCB"', 'kind = "lc-lucb"', "'LCLUCB'"),
    ("threshold = 0.3", "treshold = 0.3", "'threshold'"),
    ("threshold = 0.3", "threshold = { at_lest = 0.3 }", "'at_least'"),
    ("threshold = 0.3", "threshold = { wear = { time_safe = 0.3 } }", "'times_safe'"),
    ("threshold = 0.3", "threshold = { wear = 0.3 }\nmean_cost_bound = { waer = 1.0 }", "'wear'"),
    ("threshold = 0.3", 'threshold = 0.3\noptimism = "directinal"', "'directional'"),
    ("{ features = [0.0, 0.0] }", "{ feature = [0.0, 0.0] }", "'features'"),
    ("[policy]", '[certify]\nfamily = "random_sphere"\n[policy]', "'random-sphere'"),
]


@pytest.mark.parametrize(("old", "new", "meant"), MEANT, ids=[new for _, new, _ in MEANT])
def test_a_key_that_is_nearly_right_is_refused_with_the_right_one(
    old: str, new: str, meant: str, tmp_path: Path
) -> None:
    assert old in GOOD
    code, said = called("simulate", spec(tmp_path, GOOD.replace(old, new, 1)), "--out", tmp_path / "out")
    assert code == 2
    assert f"did you mean {meant}?" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[policy]", "[certify]\nrounds = 5\n[policy]", "it belongs into [simulation]"),
        ("rounds = 20", "rounds = 20\ncolour = 3", "known keys: rounds, runs"),
        ("threshold = 0.3", "threshold = .3", "TOML writes .02 as 0.02"),
        ("threshold = 0.3", 'threshold = "30%"', "0.02"),
        ("[policy]", "[policy.careful]", "several as [policies.NAME]"),
        ("threshold = 0.3", "threshold = 30%", "two percent are 0.02"),
        ('kind = "linear"', "kind = linear", 'TOML writes words in quotes: "linear"'),
    ],
)
def test_what_stands_in_the_wrong_place_or_is_written_otherwise_is_told_how(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    code, told = called("simulate", spec(tmp_path, GOOD.replace(old, new, 1)), "--out", tmp_path / "out")
    assert (code, said in told) == (2, True), told


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("safe_name = ", "save_name = ", "'safe_name'"),
        ('safe_name = "nothing"', 'safe_name = "nothin"', "'nothing'"),
        ("[limits.opt_out]", "[limit.opt_out]", "'limits'"),
        ("at_most", "at_mots", "'at_most'"),
        ('name = "click"', 'name = "click"\nmodel = "rate"', "'rates'"),
        ("[reward]", "[settings]\ncheck_assumption = true\n[reward]", "'check_assumptions'"),
    ],
)
@pytest.mark.parametrize("command", ["problem", "serve"])
def test_so_it_is_in_the_file_of_a_problem(command: str, old: str, new: str, meant: str, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "server.db") if command == "serve" else ()
    code, said = called(command, spec(tmp_path, PROBLEM.replace(old, new, 1)), *store)
    assert code == 2
    assert f"did you mean {meant}?" in said
    assert said.count("\n") == 1
