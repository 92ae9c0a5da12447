"""The schema of a certificate's file. Whether the content is true is tested by `verify`."""

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, conlist, create_model

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.reports.evidence import FORMAT, VERSION
from stagewise.reports.regret_bound import RegretTheorem
from stagewise.reports.run_statistics import BARS, LEVELS

REREAD_HINT = "read it with the stagewise that wrote it, or certify again"


def build_table_model(
    fields: dict[str, Any], optional: Sequence[str] = (), extra: Literal["forbid", "allow"] = "forbid"
) -> Any:
    """Return a model with these keys, of these types, and no others."""
    strict = ConfigDict(extra=extra, strict=True, allow_inf_nan=False)
    given: dict[str, Any] = {name: (kind, None if name in optional else ...) for name, kind in fields.items()}
    return create_model("Table", __config__=strict, **given)


def build_quantiles_type(kind: Any) -> Any:
    """Return the type of a value at every quantile."""
    return Annotated[dict[Literal[LEVELS], kind], Field(min_length=len(LEVELS))]  # type: ignore[valid-type]


def check_curves(regret: Any) -> Any:
    """Reject curves of different lengths, and an incomplete bound."""
    curves = [*regret.quantiles.values(), *([] if regret.bound is None else [regret.bound])]
    if any(len(curve) != len(regret.rounds) for curve in curves):
        raise ValueError("has curves of other lengths than its rounds")
    if len({regret.bound is None, regret.above is None, regret.failure is None}) > 1:
        raise ValueError("has a bound, a number of runs above it or a probability of it without the others")
    return regret


VERDICT = Literal["supported", "refuted", "undecided"]
COUNT: Any = Annotated[int, Field(ge=0, lt=2**62)]
POSITIVE: Any = Annotated[int, Field(ge=1, lt=2**62)]
NUMBER: Any = Annotated[float, Field(ge=-1e100, le=1e100)]
SHARE: Any = Annotated[float, Field(ge=0.0, le=1.0)]
SECONDS: Any = Annotated[float, Field(ge=0.0, le=1e12)]
NAME: Any = Annotated[str, Field(min_length=1, max_length=200)]
DAY: Any = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
THEOREM: Any = Literal[tuple(str(code) for code in RegretTheorem)]
DIGEST: Any = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
NUMBERS, BETWEEN = conlist(NUMBER), conlist(SHARE, min_length=2, max_length=2)
CUTS = build_quantiles_type(NUMBER)
EVIDENCE: dict[str, Any] = {
    **{"occurrences": COUNT, "runs": POSITIVE, "allowed": SHARE, "verdict": VERDICT},
    **{"anytime": BETWEEN, "exact": BETWEEN | None, "runs_needed": POSITIVE | None},
}
CURVES = build_table_model(
    {
        "rounds": conlist(POSITIVE, min_length=1),
        "quantiles": build_quantiles_type(NUMBERS),
        **{"bound": NUMBERS | None, "above": COUNT | None, "theorem": THEOREM, "failure": NUMBER | None},
    }
)
MARGIN = build_table_model(
    {
        "quantiles": CUTS,
        "counts": conlist(COUNT, min_length=BARS, max_length=BARS),
        "edges": conlist(NUMBER, min_length=BARS + 1, max_length=BARS + 1),
    }
)
BATCH = build_table_model(
    {
        **{"first": COUNT, "runs": POSITIVE, "violating_runs": COUNT, "missing": conlist(COUNT)},
        **{"regret": NUMBER, "margin": NUMBERS, "digest": DIGEST},
    }
)
PLAN = build_table_model(
    {
        **{"rounds": POSITIVE, "runs": POSITIVE, "seed": Annotated[int, Field(ge=0, lt=2**64)], "batch": POSITIVE},
        **{"stop_early": bool, "backend": Literal["cpu", "python", "cuda"], "points": POSITIVE},
    }
)
MADE = build_table_model(
    {
        **{"day": DAY | None, "versions": dict[str, str], "machine": str},
        **{"name": NAME | None, "seconds": SECONDS, "compile_seconds": SECONDS | None},
    },
    optional=["day", "name", "compile_seconds"],
)
FILE = build_table_model(
    {
        **{
            "format": str,
            "version": int,
            "verify": str,
            "verdict": VERDICT,
            "coverage_verdict": VERDICT,
            "mixes": bool,
        },
        "claim": build_table_model(
            {"delta": SHARE, "confidence": Annotated[float, Field(gt=0.0, lt=1.0)], "rounds": POSITIVE}
        ),
        "violations": build_table_model(EVIDENCE),
        "first_violation": CUTS | None,
        "coverage": conlist(build_table_model({"signal": str, **EVIDENCE})),
        "optimism": build_table_model({"runs": COUNT, "rounds": COUNT}) | None,
        "regret": Annotated[CURVES, AfterValidator(check_curves)],
        "margins": Annotated[dict[str, MARGIN], Field(min_length=1)],  # type: ignore[valid-type]
        "first_near_optimal_round": build_table_model({"never": COUNT, "quantiles": CUTS | None}),
        "policy": build_table_model({"kind": str, "settings": dict[str, Any] | str}),
        "thresholds": conlist(
            build_table_model({"name": str, "side": Literal["at most", "at least"], "value": NUMBER}), min_length=1
        ),
        "assumptions": conlist(
            build_table_model({"assumption": str, "declared": NUMBERS, "real": NUMBERS, "kept": bool})
        ),
        "world": build_table_model(
            {"family": str, "name": str, "spread": SHARE | None}, optional=["name", "spread"], extra="allow"
        ),
        "closeness": build_table_model(
            {
                **{"runs": POSITIVE, "rounds": POSITIVE},
                "limits": conlist(build_table_model({"met": COUNT, "left": NUMBER}), min_length=1),
            }
        )
        | None,
        **{"plan": PLAN, "batches": conlist(BATCH, min_length=1), "made": MADE},
    },
    optional=["closeness"],
)


def parse_certificate(text: str, path: Any) -> dict[str, Any]:
    """Return the content of a certificate, or reject the text from `path`."""
    try:
        content = json.loads(text, parse_constant=parse_finite, parse_float=parse_finite)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(
            ErrorCode.FILE_INVALID,
            "{path} is not a certificate, because it is not valid JSON: {error}",
            path=path,
            error=error,
        ) from None
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise InvalidFile(
            ErrorCode.FILE_OF_OTHER_VERSION,
            "{path} is not a certificate of this version of stagewise ({format} {version}); {reread_hint}",
            path=path,
            format=FORMAT,
            version=VERSION,
            reread_hint=REREAD_HINT,
        )
    try:
        FILE.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        given = "" if isinstance(first["input"], dict | list) else f" is {safe_repr(first['input'])}"
        wrong = f"{where}{given}: {first['msg'][0].lower()}{first['msg'][1:160]}"
        raise InvalidFile(
            ErrorCode.FILE_INVALID,
            "{path} is not a valid certificate: {wrong}; {reread_hint}",
            path=path,
            wrong=wrong,
            reread_hint=REREAD_HINT,
        ) from None
    return content


def parse_finite(text: str) -> float:
    """Return a finite number, or reject it."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} stands where only finite numbers may")
    return value
