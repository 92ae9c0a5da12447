"""Classes of functions in a TOML file."""

from pathlib import Path

from tests.cli.commands import spec
from tests.problem.refusal import refused

from stagewise import FiniteSetWorld, InvalidFile, simulate
from stagewise.cli.spec import read_spec
from stagewise.problem.errors import ErrorCode

SPEC = """
[simulation]
rounds = 50
[world]
kind = "table"
features = [[0.0], [0.5], [1.0]]
reward = [0.1, 0.5, 0.9]
cost = [0.0, 0.2, 0.6]
noise = 0.1
[policies.classes]
kind = "OPNLB"
reward_class = {classes}
cost_class = {{ functions = [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]], features = [[0.0], [0.5], [1.0]] }}
safe_action = {{ features = [0.0], reward = 0.1, cost = 0.0 }}
threshold = 0.3
noise = 0.1
"""


def test_a_file_can_ask_for_it_in_a_world_of_listed_actions(tmp_path: Path) -> None:
    listed = "{ functions = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]], features = [[0.0], [0.5], [1.0]] }"
    asked = read_spec(spec(tmp_path, SPEC.format(classes=listed)))
    assert isinstance(asked.world, FiniteSetWorld)
    result = simulate(asked.policies["classes"], asked.world, rounds=asked.simulation.rounds)
    assert result.violations[0] == 0
    assert result.manifest["policy"]["settings"]["method"] == "pointwise"


def test_a_file_with_a_bad_class_is_refused(tmp_path: Path) -> None:
    with refused(InvalidFile, ErrorCode.FILE_INVALID):
        read_spec(spec(tmp_path, SPEC.format(classes="[[0.1, 0.5, 0.9]]")))
    with refused(InvalidFile, ErrorCode.FILE_INVALID):
        read_spec(spec(tmp_path, SPEC.format(classes="[[0.1]]").replace('kind = "table"', 'kind = "tables"')))
