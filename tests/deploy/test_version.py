"""Every file that names the version of the project names the same one."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml

import stagewise

ROOT = Path(__file__).parents[2]


def read_toml(path: str) -> str:
    return str(tomllib.loads((ROOT / path).read_text(encoding="utf-8"))["project"]["version"])


def read_json(path: str) -> str:
    return str(json.loads((ROOT / path).read_text(encoding="utf-8"))["version"])


def read_yaml(path: str, key: str = "version") -> str:
    return str(yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))[key])


@pytest.mark.parametrize(
    ("named", "version"),
    [
        ("reproduction", read_toml("reproduction/pyproject.toml")),
        ("studies", read_toml("studies/pyproject.toml")),
        ("client", read_json("clients/typescript/package.json")),
        ("lock of the client", read_json("clients/typescript/package-lock.json")),
        ("chart", read_yaml("deploy/helm/stagewise/Chart.yaml")),
        ("image of the chart", read_yaml("deploy/helm/stagewise/Chart.yaml", "appVersion")),
        ("citation", read_yaml("CITATION.cff")),
        ("changelog", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1].split(",")[0].split()[0]),
    ],
)
def test_every_file_names_this_version(named: str, version: str) -> None:
    assert version == stagewise.__version__, named
