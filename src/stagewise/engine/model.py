"""What a round is composed of: models of the signals, and a rule that decides by their bounds.

A model or a rule is a named tuple of kernels. It is known by its name, "module:NAME", so that it can be pickled and
hashed; `engine.round.build_round` unrolls them (docs/explanation/architecture.md).
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from stagewise.engine.compile import Floats, Ints, kernel

Kernel = Callable[..., Any]
REWARD, EVERY = 1, 2  # what a rule samples: the reward, or every signal under a certificate


class Model(NamedTuple):
    """A model of some signals. A block is its view of a layout and a memory: a named tuple of its own."""

    name: str
    view: Kernel  # (layout, memory, index) -> block, which has the fields of `layout.ModelBlock` at least
    size: Callable[[Ints, int, int, int], int]  # (layout, index, candidates, capacity) -> length of its memory; Python
    start: Kernel  # (layout, block, settings, memory, work): write the memory without data; it is zeros before
    bounds: Kernel  # (layout, block, features, known, settings, memory, bounds, work)
    check: Kernel  # (layout, block, settings, memory, bounds) -> code of a contradiction, or 0
    learn: Kernel  # (layout, block, action, index, cached_index, step, cached_only, observed, settings, memory, work)
    change: Kernel | None  # (layout, old, new, features, settings, memory, changed, work): cache other candidates
    widen: Kernel | None  # (layout, old, new, memory, changed): copy into a memory with more capacity; None for
    # these two: the size of its memory depends on neither, and it is copied
    sample: Kernel | None = None  # (layout, block, features, known, settings, memory, bounds, seed, run, round_, work)
    sample_reward: Kernel | None = None  # the same, of the reward alone (Safe-LTS)
    adjust: Kernel | None = None  # (layout, settings, bounds, mixes, samples) -> code: clip all bounds at declarations
    counts: Kernel | None = None  # (block, memory) -> tuple with the `pulls` of every candidate
    diagnostics: Any = None  # see `models.diagnostics.ModelDiagnostics`
    caches: int = 0  # 1: outcomes are learned by the cached candidate whose ray contains them
    between: int = 1  # 1: points between candidates have means
    per_round: int = 0  # 1: every round has its own safe action, and nothing is cached
    estimates: int = 0  # 1: it writes the row ESTIMATE, because its intervals are clipped or asymmetric
    capacity: str = ""  # what its capacity counts: "points", "segments", "rows" or nothing
    free_rows: Any = None  # (layout, memory, index, rows, values) -> how many of these rows (n, D) have room,
    # at least 1 if any row has; None: its size is fixed
    reserve: Any = None  # (layout, memory, index, count) -> capacity for so many more of its unit; Python
    is_valid: Any = None  # (block, memory) -> whether it can be a memory of its own; Python
    add_actions: Kernel | None = None  # (layout, old, new, memory, grown): copy to more actions; None: as `widen`
    begin_log: Any = None  # (layout, memory, index, rows): before the rows (n, D) of a log; Python
    finish_log: Any = None  # (block, settings, memory, rows, values): after them; values (n, 1 + m); Python
    learn_with_ends: Kernel | None = None  # (layout, index, skipped, rows, outcomes, settings, memory, ends, work):
    # learn rows (n, D), and write the upper end of each before, above the smallest outcome; 1: its action is `skipped`
    learns_logs: int = 0  # 1: `finish_log` learns a log's rows, which are not learned one by one

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return find_value, (self.name,)


class Rule(NamedTuple):
    """A rule: bounds in, a decision out. It never asks which model made the bounds."""

    name: str
    choose: Kernel | None  # (features, eligible, contradiction, layout, settings, bounds, rule, factors, basis, answer,
    # seed, run, round_) -> the candidate, or minus the reason code of the safe action; None: the safe action always
    mixes: int = 0  # 1: the action is drawn from a mixture
    dense: int = 0  # 1: of any number of actions, in the row WEIGHTS of the workspace; 0: of m + 1, in the answer
    given: int = 0  # 1: the caller gives a number for every action, as the last column of the features
    samples: int = 0  # REWARD or EVERY
    prepare: Kernel | None = None  # (bounds, rule): before anything is sampled

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return find_value, (self.name,)


ALWAYS_SAFE = Rule("stagewise.engine.model:ALWAYS_SAFE", None)


class RoundSpec(NamedTuple):
    """What a round is compiled for."""

    models: tuple[Model, ...] = ()  # one for each block
    rule: Rule = ALWAYS_SAFE
    limits: int = 0  # 2: several

    @property
    def mixes(self) -> bool:
        """Whether the rule draws the action from a mixture."""
        return bool(self.rule.mixes)

    @property
    def points(self) -> bool:
        """Whether the rule plays points between the safe action and candidates, whose means need features."""
        return self.rule.choose is not None and not self.mixes and all(model.between for model in self.models)

    @property
    def per_round_safe(self) -> bool:
        """Whether every round has its own safe action."""
        return any(model.per_round for model in self.models)

    def counts_capacity_in(self, unit: str) -> bool:
        """Return whether the capacity of some model counts these."""
        return any(model.capacity == unit for model in self.models)


def find_value(name: str) -> Any:
    """Return the model or rule of this name."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


@kernel
def start_with_zeros(layout: Ints, block: Any, settings: Floats, memory: Floats, work: Floats) -> None:
    """Leave the zeros of a new memory."""
