"""What a certificate's file may hold: which words, which numbers, nothing else. Whether it is true, `verify` tells."""

import json
import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidFile
from stagewise.reports.certificate import BARS, FORMAT, QUANTILES, VERSION

Word = Literal["supported", "refuted", "undecided"]
Count = Annotated[int, Field(ge=0, lt=2**62)]
Positive = Annotated[int, Field(ge=1, lt=2**62)]
Number = Annotated[float, Field(ge=-1e100, le=1e100)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Between = Annotated[list[Share], Field(min_length=2, max_length=2)]
LEVELS = tuple(f"{level:g}" for level in QUANTILES)
Cuts = Annotated[dict[Literal[LEVELS], Number], Field(min_length=len(LEVELS))]  # type: ignore[valid-type]
Curves = Annotated[dict[Literal[LEVELS], list[Number]], Field(min_length=len(LEVELS))]  # type: ignore[valid-type]


class Strict(BaseModel):
    """A table of the file: no other keys, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Claim(Strict):
    """What is claimed."""

    delta: Share
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)]
    rounds: Positive


class Evidence(Strict):
    """How often something happened."""

    happened: Count
    runs: Positive
    allowed: Share
    anytime: Between
    exact: Between | None
    verdict: Word
    needed: Positive | None


class Coverage(Evidence):
    """How often an interval of a signal failed."""

    signal: str


class Optimism(Strict):
    """Rounds that hoped for less than was possible."""

    runs: Count
    rounds: Count


class Regret(Strict):
    """What was lost, and what a theorem allows."""

    rounds: Annotated[list[Positive], Field(min_length=1)]
    quantiles: Curves
    bound: list[Number] | None
    above: Count | None
    theorem: str
    failure: Number | None

    @model_validator(mode="after")
    def fits(self) -> "Regret":
        """Refuse curves that are not as long as each other, and half a bound."""
        curves = [*self.quantiles.values(), *([] if self.bound is None else [self.bound])]
        if any(len(curve) != len(self.rounds) for curve in curves):
            raise ValueError("has curves of other lengths than its rounds")
        if len({self.bound is None, self.above is None, self.failure is None}) > 1:
            raise ValueError("has a bound, a number of runs above it or a probability of it without the others")
        return self


class Margin(Strict):
    """What was left to a limit."""

    quantiles: Cuts
    counts: Annotated[list[Count], Field(min_length=BARS, max_length=BARS)]
    edges: Annotated[list[Number], Field(min_length=BARS + 1, max_length=BARS + 1)]


class Settled(Strict):
    """When runs first gained nine tenths of what was possible."""

    never: Count
    quantiles: Cuts | None


class Threshold(Strict):
    """A limit."""

    name: str
    side: Literal["at most", "at least"]
    value: Number


class Assumption(Strict):
    """What the policy was told, and what was so."""

    assumption: str
    declared: list[Number]
    real: list[Number]
    kept: bool


class Policy(Strict):
    """The policy: settings that a file can hold, or its repr."""

    kind: str
    settings: dict[str, Any] | str


class World(BaseModel):
    """The family of worlds, of which the page names these; the rest is shown as it stands."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    family: str
    name: str = ""
    spread: Share | None = None


class Plan(Strict):
    """What was to be played."""

    rounds: Positive
    runs: Positive
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    batch: Positive
    early: bool
    backend: Literal["cpu", "python", "cuda"]
    points: Positive


class Batch(Strict):
    """Some runs, and their totals."""

    first: Count
    runs: Positive
    violating: Count
    missing: list[Count]
    regret: Number
    margin: list[Number]
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Made(Strict):
    """By what, when and in what time."""

    day: Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] | None = None
    versions: dict[str, str]
    machine: str
    seconds: Annotated[float, Field(ge=0.0, le=1e12)]


class File(Strict):
    """The whole file."""

    format: str
    version: int
    verdict: Word
    grounds: Word
    claim: Claim
    violations: Evidence
    first_violation: Cuts | None
    coverage: list[Coverage]
    optimism: Optimism | None
    regret: Regret
    margins: Annotated[dict[str, Margin], Field(min_length=1)]
    settled: Settled
    policy: Policy
    thresholds: Annotated[list[Threshold], Field(min_length=1)]
    mixes: bool
    assumptions: list[Assumption]
    world: World
    plan: Plan
    batches: Annotated[list[Batch], Field(min_length=1)]
    made: Made
    verify: str


def parsed(text: str, place: Any) -> dict[str, Any]:
    """Return a certificate's plain values, or say what is wrong with the text from `place`."""
    try:
        content = json.loads(text, parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{place} is no certificate, since it is not whole JSON: {error}") from None
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise InvalidFile(f"{place} is no certificate of this version of stagewise ({FORMAT} {VERSION})")
    try:
        File.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        given = "" if isinstance(first["input"], dict | list) else f" is {shown(first['input'])}"
        wrong = f"{where}{given}: {first['msg'][0].lower()}{first['msg'][1:160]}"
        raise InvalidFile(f"{place} is no certificate that can be read: {wrong}") from None
    return content


def finite(text: str) -> float:
    """Return a number that JSON can hold again."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} stands where only finite numbers may")
    return value
