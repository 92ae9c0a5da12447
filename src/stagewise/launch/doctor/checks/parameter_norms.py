"""Check `norm_bound`: no linear parameter is longer than `norm_bound`."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Ints
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.linear_fits import LinearFits
from stagewise.launch.doctor.log_profile import KL_INTERVAL, LogProfile


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find linear signals with an action whose parameter is certainly longer than `norm_bound`.

    With noise of ½, ‖θ̂ − θ‖² ≤ ¼ (tr + 2 √(t tr²) + 2 λ t) with probability 1 − e⁻ᵗ, where tr, tr² and λ are those
    of the rows' inverse matrix (Hsu, Kakade and Zhang 2012). For every θ, ‖θ‖ ‖x̄‖ is at least the mean outcome.
    """
    norm_bound = float(profile.log.problem.settings.get("norm_bound", 1.0))
    findings = [
        Finding.of(
            FindingCode.PARAMETER_TOO_LONG,
            name=signal,
            action=action,
            low=norm.low,
            high=norm.high,
            norm_bound=norm_bound,
        )
        for signal, action, norm in estimate_norms(profile, alpha)
        if norm.low > norm_bound
    ]
    return select_most_severe(findings, Finding.of(FindingCode.PARAMETERS_WITHIN_BOUND, norm_bound=norm_bound))


class ParameterNorm(NamedTuple):
    """The norm of a parameter: the fit, a lower bound, and an upper bound rounded up to a half."""

    fit: float
    low: float
    high: float


def estimate_norms(profile: LogProfile, p_value: float) -> Iterator[tuple[str, str, ParameterNorm]]:
    """Yield the norm of every linear signal's parameter by action; all bounds hold with probability 1 − p_value."""
    problem = profile.log.problem
    linear = [signal for signal, name in enumerate(profile.names) if problem.choices[name].model == "linear"]
    all_rows = np.ones(profile.log.rows, dtype=bool)
    log_level = math.log(2.0 * max(len(linear), 1) * len(problem.actions) / p_value)
    for signal in linear:
        fits = LinearFits(profile, signal)
        for action, name in enumerate(problem.actions):
            norm = estimate_norm(fits, fits.get_rows(action, all_rows), log_level)
            if norm is not None:
                yield profile.names[signal], name, norm


def estimate_norm(fits: LinearFits, rows: Ints, log_level: float) -> ParameterNorm | None:
    """Return the norm of the parameter of some rows, with error probability 2 exp(−log_level); None: not identified."""
    if not rows.size:
        return None
    design = fits.design[rows]
    centre = float(np.linalg.norm(design.mean(axis=0)))
    mean = KL_INTERVAL(float(rows.size), float(fits.outcomes[rows].mean()), log_level).low / centre
    values = np.linalg.eigvalsh(design.T @ design)
    if values[0] <= 1e-9 * values[-1]:  # collinear numbers do not identify a parameter
        return None
    inverse = 1.0 / values
    error = 0.25 * (
        inverse.sum() + 2.0 * math.sqrt(log_level * float(inverse @ inverse)) + 2.0 * inverse[0] * log_level
    )
    norm = float(np.linalg.norm(fits.fit(rows)))
    low = max(norm - math.sqrt(error), mean)
    return ParameterNorm(norm, low, math.ceil(2.0 * (norm + math.sqrt(error))) / 2.0)
