"""All experiments by name, from the folders of `paper` and `beyond`."""

from importlib import import_module
from pkgutil import iter_modules

from stagewise_reproduction import beyond, paper
from stagewise_reproduction.experiment import Experiment


def load_experiments() -> list[Experiment]:
    """Return the experiments of all folders, the paper's first."""
    names = [folder.name for room in (paper, beyond) for folder in iter_modules(room.__path__, f"{room.__name__}.")]
    return [experiment for name in names for experiment in import_module(name).EXPERIMENTS]


CATALOGUE = {experiment.name: experiment for experiment in load_experiments()}
