"""The event `feature_flag.evaluation` of OpenTelemetry: a decision, beside the span in which it was made.

It needs the package opentelemetry-api. Nothing else of stagewise imports this module unless it is installed.
"""

from typing import Any

from opentelemetry._logs import Logger, SeverityNumber, get_logger

from stagewise.records.reason import FallbackReason

EVENT_NAME = "feature_flag.evaluation"
WELL_KNOWN = {
    None: "split",
    FallbackReason.EXPERIMENT_OFF: "disabled",
    FallbackReason.KILLED: "disabled",
    FallbackReason.TRIPPED: "disabled",
    FallbackReason.DECISION_FAILED: "error",
    FallbackReason.LOG_WRITE_FAILED: "error",
    FallbackReason.SERVER_UNAVAILABLE: "error",
    FallbackReason.SERVER_NOT_READY: "error",
}
"""OpenTelemetry's word, where it has one for a reason."""


def record_decision(experiment: str, decision: Any, logger: Logger | None = None) -> None:
    """Record a decision as an event of the current span, by the semantic conventions for feature flags.

    Args:
        experiment: The flag: the name of the experiment.
        decision: A `stagewise.Decision`, or an answer of the server or the client.
        logger: OpenTelemetry's logger; None: that of the global provider.

    Example:
        >>> import stagewise as sw
        >>> limits = {"opt_out": sw.Limit(0.02, safe_bound=0.0)}
        >>> names = ["nothing", "offer"]
        >>> problem = sw.Problem(action_names=names, safe_name="nothing", reward=sw.Reward("click"), limits=limits)
        >>> record_decision("messages", sw.Agent(problem).decide())
    """
    reason, action = decision.reason, decision.action
    word = WELL_KNOWN.get(reason, reason)
    attributes: dict[str, Any] = {
        "feature_flag.key": experiment,
        "feature_flag.provider.name": "stagewise",
        "feature_flag.result.variant": str(action),
        "feature_flag.result.reason": str(word),
    }
    if word == "error":
        attributes |= {"error.type": str(reason), "feature_flag.error.message": str(decision.message)}
    if reason is not None:
        attributes["stagewise.reason"] = str(reason)
    version = getattr(decision, "version", None)
    if version is not None:
        attributes["feature_flag.version"] = str(version)
    id_, mode = getattr(decision, "decision_id", None) or getattr(decision, "id", None), getattr(decision, "mode", None)
    if id_ is not None:
        attributes["stagewise.decision_id"] = str(id_)
    if mode is not None:
        attributes["stagewise.mode"] = str(mode)
    probability = decision.probabilities.get(action) if isinstance(decision.probabilities, dict) else None
    if probability is not None:
        attributes["stagewise.probability"] = float(probability)
    logger = logger or get_logger("stagewise")
    logger.emit(event_name=EVENT_NAME, severity_number=SeverityNumber.INFO, attributes=attributes)
