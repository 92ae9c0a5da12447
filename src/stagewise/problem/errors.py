"""Exceptions with a code, data and one sentence, and faults of files. An operation that raises has changed nothing."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from stagewise.problem.formatting import (
    LONGEST,
    fit_line,
    format_path,
    join_names,
    make_sentence,
    safe_repr,
    suggest_name,
)


class ErrorCode(StrEnum):
    """The kind of an error, as a code that never changes.

    Example:
        >>> ErrorCode("out_of_range") is ErrorCode.OUT_OF_RANGE
        True
    """

    # Values and settings
    OUT_OF_RANGE = "out_of_range"  #: A number is outside its allowed range.
    NOT_FINITE = "not_finite"  #: A number is NaN or infinite.
    WRONG_TYPE = "wrong_type"  #: A value has a type or form that cannot be used here.
    WRONG_SHAPE = "wrong_shape"  #: An array, a list or a column has the wrong shape or length.
    MISSING_VALUE = "missing_value"  #: A required value or setting is missing or empty.
    INVALID_CHOICE = "invalid_choice"  #: A value is not one of the allowed choices.
    INVALID_PROBABILITY = "invalid_probability"  #: Probabilities or shares that are invalid or contradict each other.
    TIME_MISSING = "time_missing"  #: A limit has a drift, and a decision has no time.
    INVALID_TIME = "invalid_time"  #: A time, a duration or a time zone cannot be read.
    INVALID_NAME = "invalid_name"  #: A name or path is empty, too long, reserved or has forbidden characters.
    UNKNOWN_NAME = "unknown_name"  #: A name refers to nothing that exists.
    DUPLICATE_NAME = "duplicate_name"  #: A name is used twice.
    UNKNOWN_SETTING = "unknown_setting"  #: A setting of this name does not exist.
    CONFLICTING_SETTINGS = "conflicting_settings"  #: Two values or settings contradict each other.
    UNUSED_SETTING = "unused_setting"  #: A setting is given that has no effect here.
    UNSUPPORTED = "unsupported"  #: This policy, agent or server does not support the operation.
    TOO_LARGE = "too_large"  #: The input or the computation exceeds the available memory or a fixed maximum.
    MISSING_DEPENDENCY = "missing_dependency"  #: A required package is not installed or too old.
    CALLBACK_FAILED = "callback_failed"  #: A function that the caller gave failed or returned an invalid result.

    # Problem and limits
    UNKNOWN_SIGNAL = "unknown_signal"  #: The problem has no signal or limit of this name.
    LIMIT_NEVER_BINDS = "limit_never_binds"  #: A limit beyond every possible value: it never binds or never holds.
    BOUND_EXCEEDED = "bound_exceeded"  #: An action or a mean exceeds a bound that was declared for it.
    PROMISE_NOT_CHOSEN = (
        "promise_not_chosen"  #: A limit of a problem with a context does not say to whom it is promised.
    )
    SAFE_ACTION_MISSING = "safe_action_missing"  #: No safe action is given or offered.
    SAFE_ACTION_INVALID = "safe_action_invalid"  #: The safe action does not fit the policy, the actions or the world.
    SAFE_ACTION_OVER_LIMIT = "safe_action_over_limit"  #: The safe action violates a limit or leaves no slack.
    SAFE_COST_UNKNOWN = "safe_cost_unknown"  #: The safe action's cost is needed and unknown.
    PROBLEM_MISMATCH = "problem_mismatch"  #: A saved agent belongs to another problem or policy.
    STATE_MISMATCH = "state_mismatch"  #: A learned state or snapshot belongs to another policy, learner or action list.
    NO_OPEN_ALERT = "no_open_alert"  #: There is no open alert of this name to acknowledge.

    # Actions and contexts
    UNKNOWN_ACTION = "unknown_action"  #: An action is not one of the known actions.
    ACTION_RETIRED = "action_retired"  #: A later version of the problem retired the action.
    INVALID_ACTION_SET = "invalid_action_set"  #: An action set is empty, unbounded or degenerate.
    UNSUPPORTED_ACTIONS = "unsupported_actions"  #: The policy or world cannot use this kind of action set.
    DIMENSION_MISMATCH = "dimension_mismatch"  #: Two objects have different numbers of features or actions.
    UNKNOWN_CONTEXT_FIELD = "unknown_context_field"  #: The context has a field that the problem does not declare.
    MISSING_CONTEXT_FIELD = "missing_context_field"  #: The context lacks a value that the problem declares.
    CONTEXT_OUT_OF_RANGE = "context_out_of_range"  #: A number of the context is outside its declared range.
    UNKNOWN_LEVEL = "unknown_level"  #: A category of the context has a level that the problem does not declare.

    # Outcomes and logs
    UNKNOWN_DECISION = "unknown_decision"  #: No decision has this id or round, or another one was made.
    OUTCOME_MISSING = "outcome_missing"  #: An outcome lacks a value that is needed, or has none at all.
    OUTCOME_OUT_OF_RANGE = "outcome_out_of_range"  #: An outcome is outside its declared range.
    OUTCOME_ALREADY_KNOWN = "outcome_already_known"  #: The decision or its outcome is already counted or closed.
    OUTCOME_TOO_LATE = "outcome_too_late"  #: The outcome arrived after its window closed.
    LOG_EMPTY = "log_empty"  #: The log has no rows, or none that can be used.
    LOG_TOO_SHORT = "log_too_short"  #: The log has too few rows or spans too little time.
    LOG_ALREADY_LEARNED = "log_already_learned"  #: Some or all rows of the log are already learned.
    LOG_CONTRADICTS_PROBLEM = "log_contradicts_problem"  #: The log contradicts what the problem declares.
    INVALID_ROW = "invalid_row"  #: A row of the log holds an invalid value.
    COLUMN_MISSING = "column_missing"  #: A table has no column of this name.
    COLUMN_AMBIGUOUS = "column_ambiguous"  #: The role of a column cannot be inferred from its name or content.
    COLUMN_WRONG_TYPE = "column_wrong_type"  #: A column holds values of the wrong type.
    PROPENSITY_MISSING = "propensity_missing"  #: The log lacks the probabilities of its actions.

    # Files
    FILE_NOT_FOUND = "file_not_found"  #: A file, folder or dataset does not exist.
    NOT_SEALED = "not_sealed"  #: The row is in the log, and no seal has it yet.
    FILE_EXISTS = "file_exists"  #: The target already holds other data and is not overwritten.
    FILE_UNREADABLE = "file_unreadable"  #: The operating system cannot read the file.
    FILE_NOT_WRITABLE = "file_not_writable"  #: The file or folder cannot be created or written.
    FILE_WRONG_KIND = "file_wrong_kind"  #: The file is of another kind or extension than is needed.
    FILE_INVALID = "file_invalid"  #: The file's syntax or a value in it is invalid.
    FILE_CORRUPT = "file_corrupt"  #: The file is incomplete or damaged.
    FILE_CHANGED = "file_changed"  #: Another program changed, replaced or removed the file.
    FILE_OF_OTHER_VERSION = "file_of_other_version"  #: Another version of stagewise wrote the file or store.
    DIGEST_MISMATCH = "digest_mismatch"  #: The content does not match its digest or seal.
    NOT_SERIALIZABLE = "not_serializable"  #: The object cannot be written to a file or a request, or rebuilt from one.

    # Simulation and certificates
    INVALID_DECISION = "invalid_decision"  #: A policy returned a decision that is not valid in its round.
    WORLD_MISMATCH = "world_mismatch"  #: The world does not fit the policy, the problem or the other runs.
    UNSUPPORTED_BACKEND = "unsupported_backend"  #: The backend cannot play this policy or world.
    BACKEND_UNAVAILABLE = "backend_unavailable"  #: The device or scheduler of the backend or executor does not respond.

    # Command line
    INVALID_OPTION = "invalid_option"  #: The text of a command-line option cannot be parsed.
    CONFLICTING_OPTIONS = "conflicting_options"  #: Command-line options or arguments cannot be used together.

    # Server and store
    UNKNOWN_EXPERIMENT = "unknown_experiment"  #: No experiment has this name.
    UNKNOWN_KEY = "unknown_key"  #: No active key has this name.
    CONFLICT = "conflict"  #: The request contradicts what is already stored or was changed by another client.
    CHANGE_NOT_ALLOWED = "change_not_allowed"  #: The change would void the guarantee of a running experiment.
    LEARNING_FAILED = "learning_failed"  #: The server stored the data and could not learn from them.
    INVALID_ADDRESS = "invalid_address"  #: A URL or the address of a store is invalid.
    SERVER_NOT_STARTED = "server_not_started"  #: The server could not start or listen.
    SERVER_UNAVAILABLE = "server_unavailable"  #: The server does not answer or is stopping.
    STORE_UNAVAILABLE = "store_unavailable"  #: The store is closed, read-only or cannot be reached.
    STORE_BUSY = "store_busy"  #: Other writes occupy the store; the same request can succeed later.
    STORE_LOCKED = "store_locked"  #: Another server has the store open.
    STORE_CORRUPT = "store_corrupt"  #: Rows of the store are missing or out of order.
    UNAUTHORIZED = "unauthorized"  #: The API key is missing or invalid.
    FORBIDDEN = "forbidden"  #: The API key's role does not allow the request.
    NOT_FOUND = "not_found"  #: There is no such route or resource.
    METHOD_NOT_ALLOWED = "method_not_allowed"  #: The route does not support this HTTP method.
    BODY_TOO_LARGE = "body_too_large"  #: The request body exceeds the maximum size.
    RATE_LIMITED = "rate_limited"  #: The client sent too many requests; retry later.
    INVALID_JSON = "invalid_json"  #: The request body is not valid JSON.
    INVALID_REQUEST = "invalid_request"  #: The request lacks a field or has one of the wrong type.
    NOT_READY = "not_ready"  #: The server is starting and cannot serve requests yet.
    INTERNAL_ERROR = "internal_error"  #: The server failed because of a bug; its log has the details.


class StagewiseError(ValueError):
    """Base of all errors of stagewise.

    Programs compare `code`, which never changes, and read `details`, the data; `str(error)` is the sentence.

    Args:
        code: What is wrong.
        template: The sentence, with the names of its data in braces.
        **details: The data.

    Example:
        >>> error = StagewiseError(ErrorCode.OUT_OF_RANGE, "delta is {value:g}; it must be below 1", value=2.0)
        >>> error.code is ErrorCode.OUT_OF_RANGE, error.details, str(error)
        (True, {'value': 2.0}, 'delta is 2; it must be below 1')
    """

    def __init__(self, code: ErrorCode, template: str, /, **details: Any) -> None:
        super().__init__(fit_line(make_sentence(template, details), LONGEST))
        self.code, self.template, self.details = code, template, details

    @classmethod
    def must_be(cls, code: ErrorCode, subject: str, value: Any, rule: str, /) -> Self:
        """Return the error "<subject> is <value>; it must be <rule>"."""
        return cls(code, "{subject} is {value}; it must be {rule}", subject=subject, value=safe_repr(value), rule=rule)

    @classmethod
    def must_be_one_of(cls, code: ErrorCode, subject: str, value: Any, names: Iterable[str], /) -> Self:
        """Return the error "<subject> is <value>; it must be one of <names>", with the name that was probably meant."""
        names = list(names)
        template, hint = "{subject} is {value}; it must be one of {names}{hint}", suggest_name(value, names)
        return cls(code, template, subject=subject, value=safe_repr(value), names=join_names(names), hint=hint)

    @classmethod
    def must_agree(cls, code: ErrorCode, subject: str, size: Any, other: str, other_size: Any, /) -> Self:
        """Return the error "<subject> is <size> and <other> is <other size>; they must be equal"."""
        template = "{subject} is {size} and {other} is {other_size}; they must be equal"
        return cls(code, template, subject=subject, size=safe_repr(size), other=other, other_size=safe_repr(other_size))

    @classmethod
    def conflict(cls, subject: str, value: Any, fact: str, remedy: str, /) -> Self:
        """Return the error "<subject> is <value> and <fact>; <remedy>", of conflicting settings."""
        template, code = "{subject} is {value} and {fact}; {remedy}", ErrorCode.CONFLICTING_SETTINGS
        return cls(code, template, subject=subject, value=safe_repr(value), fact=fact, remedy=remedy)

    @classmethod
    def unused(cls, subject: str, value: Any, reason: str, /) -> Self:
        """Return the error "<subject> is <value>; leave it out, since <reason>", of a setting without effect."""
        template, code = "{subject} is {value}; leave it out, since {reason}", ErrorCode.UNUSED_SETTING
        return cls(code, template, subject=subject, value=safe_repr(value), reason=reason)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.code, self.template, **self.details), ()


class InvalidProblem(StagewiseError):
    """A setting or an assumption of the problem is invalid.

    Example:
        >>> import stagewise as sw
        >>> try:
        ...     sw.UCB(arms=0)
        ... except sw.InvalidProblem as error:
        ...     print(error.code)
        out_of_range
    """


class InvalidActions(StagewiseError):
    """An action set or a context is invalid.

    Example:
        >>> import stagewise as sw
        >>> try:
        ...     sw.ArmSet(2).only([5])
        ... except sw.InvalidActions as error:
        ...     print(error.code)
        unknown_action
    """


class InvalidOutcome(StagewiseError):
    """An outcome, a log or a decision is invalid.

    Example:
        >>> import stagewise as sw
        >>> try:
        ...     sw.Decision.from_dict({})
        ... except sw.InvalidOutcome as error:
        ...     print(error.code)
        wrong_type
    """


class InvalidFile(StagewiseError):
    """A file cannot be read or written.

    Example:
        >>> import stagewise as sw
        >>> try:
        ...     sw.Problem.load("no such file.toml")
        ... except sw.InvalidFile as error:
        ...     print(error.code)
        file_not_found
    """

    @classmethod
    def cannot_be(cls, code: ErrorCode, path: Path, verb: str, reason: object, /) -> Self:
        """Return the error "<path> cannot be <verb>: <reason>"; an OSError is shown by the system's reason."""
        text = reason.strerror or str(reason) if isinstance(reason, OSError) else str(reason)
        return cls(code, "{path} cannot be {verb}: {reason}", path=format_path(path), verb=verb, reason=text)


class SentenceCode(StrEnum):
    """Codes that never change, each with the template of its sentence, which may."""

    template: str

    def __new__(cls, value: str, template: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.template = value, template
        return member


class Fault(NamedTuple):
    """A code and the data of its sentence; as text, the sentence."""

    code: SentenceCode
    details: Mapping[str, Any]

    @classmethod
    def of(cls, code: SentenceCode, /, **details: Any) -> "Fault":
        return cls(code, details)

    def __str__(self) -> str:
        return make_sentence(self.code.template, self.details)
