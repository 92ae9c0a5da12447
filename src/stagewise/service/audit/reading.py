"""What an audit reads of a log before it looks at rows."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from stagewise.problem.words import nearest, shown
from stagewise.service.controls import Controls
from stagewise.service.errors import UnknownExperiment
from stagewise.service.offline import DECODE_SIZE
from stagewise.service.records import CONTROL, LOG, PROBLEM, SHOWN
from stagewise.service.store.store import Store
from stagewise.service.versions import Version, begun


def known_experiment(store: Store, name: str) -> str:
    """Return the name of an experiment, or say that there is none of this name."""
    known = store.experiments()
    if name not in known:
        there = nearest(name, known) or f"; it has {', '.join(map(repr, known[:8])) or 'none'}"
        raise UnknownExperiment(f"{shown(name)} is no experiment of this store{there}")
    return name


def versions_of(store: Store, experiment: str) -> dict[int, Version]:
    """Return all versions of an experiment's problem, as a desk plays them."""
    versions: dict[int, Version] = {}
    for event in store.all_of_kind(experiment, PROBLEM):
        made = begun(versions.get(len(versions)), event)
        versions[made.number] = made
    return versions


def log_rows_of(store: Store, experiment: str) -> int:
    """Return how many rows of an offline log an experiment began with."""
    first = store.find(experiment, LOG, "1")
    return 0 if first is None else DECODE_SIZE(first.body).rows


def was_shown(said: Mapping[str, Any], answers: Mapping[str, float]) -> bool:
    """Say whether a decision was carried out: a deferred one where somebody said so, others unless somebody did."""
    return answers.get(SHOWN, 0.0 if said["asked"].get("deferred") else 1.0) != 0.0


def controls_of(store: Store, experiment: str) -> dict[int, Controls]:
    """Return what holds after each row of controls or problems."""
    told = sorted([*store.all_of_kind(experiment, CONTROL), *store.all_of_kind(experiment, PROBLEM)])
    return {controls.row: controls for controls in accumulate(told, Controls.after, initial=Controls())}
