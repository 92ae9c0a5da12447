"""What a certificate's file may hold: which words, which numbers, nothing else. Whether it is true, `verify` tells."""

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, conlist, create_model

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidFile
from stagewise.reports.evidence import FORMAT, VERSION
from stagewise.reports.findings import BARS, LEVELS

AGAIN = "read it with the stagewise that wrote it, or certify again"


def table(fields: dict[str, Any], optional: Sequence[str] = (), extra: Literal["forbid", "allow"] = "forbid") -> Any:
    """Return a table of the file: these keys, of these types and no others."""
    strict = ConfigDict(extra=extra, strict=True, allow_inf_nan=False)
    given: dict[str, Any] = {name: (kind, None if name in optional else ...) for name, kind in fields.items()}
    return create_model("Table", __config__=strict, **given)


def cuts_of(kind: Any) -> Any:
    """Return something of a kind at every quantile that is told."""
    return Annotated[dict[Literal[LEVELS], kind], Field(min_length=len(LEVELS))]  # type: ignore[valid-type]


def fits(regret: Any) -> Any:
    """Refuse curves that are not as long as each other, and half a bound."""
    curves = [*regret.quantiles.values(), *([] if regret.bound is None else [regret.bound])]
    if any(len(curve) != len(regret.rounds) for curve in curves):
        raise ValueError("has curves of other lengths than its rounds")
    if len({regret.bound is None, regret.above is None, regret.failure is None}) > 1:
        raise ValueError("has a bound, a number of runs above it or a probability of it without the others")
    return regret


WORD = Literal["supported", "refuted", "undecided"]
COUNT: Any = Annotated[int, Field(ge=0, lt=2**62)]
POSITIVE: Any = Annotated[int, Field(ge=1, lt=2**62)]
NUMBER: Any = Annotated[float, Field(ge=-1e100, le=1e100)]
SHARE: Any = Annotated[float, Field(ge=0.0, le=1.0)]
SECONDS: Any = Annotated[float, Field(ge=0.0, le=1e12)]
NAME: Any = Annotated[str, Field(min_length=1, max_length=200)]
DAY: Any = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
DIGEST: Any = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
NUMBERS, BETWEEN = conlist(NUMBER), conlist(SHARE, min_length=2, max_length=2)
CUTS = cuts_of(NUMBER)
EVIDENCE: dict[str, Any] = {
    **{"happened": COUNT, "runs": POSITIVE, "allowed": SHARE, "verdict": WORD},
    **{"anytime": BETWEEN, "exact": BETWEEN | None, "needed": POSITIVE | None},
}
CURVES = table(
    {
        "rounds": conlist(POSITIVE, min_length=1),
        "quantiles": cuts_of(NUMBERS),
        **{"bound": NUMBERS | None, "above": COUNT | None, "theorem": str, "failure": NUMBER | None},
    }
)
MARGIN = table(
    {
        "quantiles": CUTS,
        "counts": conlist(COUNT, min_length=BARS, max_length=BARS),
        "edges": conlist(NUMBER, min_length=BARS + 1, max_length=BARS + 1),
    }
)
BATCH = table(
    {
        **{"first": COUNT, "runs": POSITIVE, "violating": COUNT, "missing": conlist(COUNT)},
        **{"regret": NUMBER, "margin": NUMBERS, "digest": DIGEST},
    }
)
PLAN = table(
    {
        **{"rounds": POSITIVE, "runs": POSITIVE, "seed": Annotated[int, Field(ge=0, lt=2**64)], "batch": POSITIVE},
        **{"early": bool, "backend": Literal["cpu", "python", "cuda"], "points": POSITIVE},
    }
)
MADE = table(
    {
        **{"day": DAY | None, "versions": dict[str, str], "machine": str},
        **{"name": NAME | None, "seconds": SECONDS, "compiling": SECONDS | None},
    },
    optional=["day", "name", "compiling"],
)
FILE = table(
    {
        **{"format": str, "version": int, "verify": str, "verdict": WORD, "grounds": WORD, "mixes": bool},
        "claim": table({"delta": SHARE, "confidence": Annotated[float, Field(gt=0.0, lt=1.0)], "rounds": POSITIVE}),
        "violations": table(EVIDENCE),
        "first_violation": CUTS | None,
        "coverage": conlist(table({"signal": str, **EVIDENCE})),
        "optimism": table({"runs": COUNT, "rounds": COUNT}) | None,
        "regret": Annotated[CURVES, AfterValidator(fits)],
        "margins": Annotated[dict[str, MARGIN], Field(min_length=1)],  # type: ignore[valid-type]
        "settled": table({"never": COUNT, "quantiles": CUTS | None}),
        "policy": table({"kind": str, "settings": dict[str, Any] | str}),
        "thresholds": conlist(
            table({"name": str, "side": Literal["at most", "at least"], "value": NUMBER}), min_length=1
        ),
        "assumptions": conlist(table({"assumption": str, "declared": NUMBERS, "real": NUMBERS, "kept": bool})),
        "world": table(
            {"family": str, "name": str, "spread": SHARE | None}, optional=["name", "spread"], extra="allow"
        ),
        "closeness": table(
            {
                **{"runs": POSITIVE, "rounds": POSITIVE},
                "limits": conlist(table({"met": COUNT, "left": NUMBER}), min_length=1),
            }
        )
        | None,
        **{"plan": PLAN, "batches": conlist(BATCH, min_length=1), "made": MADE},
    },
    optional=["closeness"],  # none in files of before
)


def parsed(text: str, place: Any) -> dict[str, Any]:
    """Return a certificate's plain values, or say what is wrong with the text from `place`."""
    try:
        content = json.loads(text, parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{place} is no certificate, since it is not whole JSON: {error}") from None
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise InvalidFile(f"{place} is no certificate of this version of stagewise ({FORMAT} {VERSION}); {AGAIN}")
    try:
        FILE.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        given = "" if isinstance(first["input"], dict | list) else f" is {shown(first['input'])}"
        wrong = f"{where}{given}: {first['msg'][0].lower()}{first['msg'][1:160]}"
        raise InvalidFile(f"{place} is no certificate that can be read: {wrong}; {AGAIN}") from None
    return content


def finite(text: str) -> float:
    """Return a number that JSON can hold again."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} stands where only finite numbers may")
    return value
