"""Versions, controls and counts that audits read from a log."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.server.controls import Controls
from stagewise.server.event_log import CONTROL, LOG, PROBLEM, SHOWN
from stagewise.server.messages import UnknownExperiment
from stagewise.server.offline_log import DECODE_SIZE
from stagewise.server.store.base import Store
from stagewise.server.versions import ProblemVersion, build_version


def check_experiment(store: Store, name: str) -> str:
    """Return the name of an experiment. Raises UnknownExperiment."""
    names = store.experiments()
    if name not in names:
        suggestion = suggest_name(name, names) or f"; it has {', '.join(map(repr, names[:8])) or 'none'}"
        raise UnknownExperiment(
            ErrorCode.UNKNOWN_EXPERIMENT,
            "{name} is not an experiment of this store{suggestion}",
            name=safe_repr(name),
            suggestion=suggestion,
        )
    return name


def read_versions(store: Store, experiment: str) -> dict[int, ProblemVersion]:
    """Return all versions of an experiment's problem by number."""
    versions: dict[int, ProblemVersion] = {}
    for event in store.iter_events_of_kind(experiment, PROBLEM):
        version = build_version(versions.get(len(versions)), event)
        versions[version.number] = version
    return versions


def count_offline_rows(store: Store, experiment: str) -> int:
    """Return the number of offline log rows of an experiment."""
    first = store.find(experiment, LOG, "1")
    return 0 if first is None else DECODE_SIZE(first.body).rows


def was_shown(body: Mapping[str, Any], answers: Mapping[str, float]) -> bool:
    """Return whether a decision was carried out: by default yes, for a deferred one only if reported."""
    return answers.get(SHOWN, 0.0 if body["request"].get("deferred") else 1.0) != 0.0


def read_controls(store: Store, experiment: str) -> dict[int, Controls]:
    """Return the controls after each control or problem row."""
    events = sorted([*store.iter_events_of_kind(experiment, CONTROL), *store.iter_events_of_kind(experiment, PROBLEM)])
    return {controls.row: controls for controls in accumulate(events, Controls.apply, initial=Controls())}
