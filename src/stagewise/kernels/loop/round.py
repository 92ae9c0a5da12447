"""One round, made of a model and a rule: look and choose, then learn.

`round_for` puts them together. What a policy never runs is not compiled for it: the switches of a `Form` are captured
as constants.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from stagewise.kernels.answer import UNFOLLOWED, written_in
from stagewise.kernels.bounds import workspace_in, workspace_size
from stagewise.kernels.compile import Flags, Floats, Ints, factory, kernel
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.layout import (
    APIECE,
    ARMS,
    CELLS,
    EVENTS,
    FOLLOWED,
    HOME,
    LIMITS,
    NEVER,
    RIDGE,
    SPACE,
    Part,
    known_actions,
    padded,
    part_of,
    safe_action,
    spread_of,
)
from stagewise.kernels.loop.pinned import pinned_for
from stagewise.kernels.promise import ALARM, cut_at_ceilings
from stagewise.kernels.rules.certified_mixture import choose_certified_mixture
from stagewise.kernels.rules.certified_ray import choose_certified_ray, exchange_crosses
from stagewise.kernels.rules.mixture import choose_mixture
from stagewise.kernels.rules.ray import choose_ray, settle_ray
from stagewise.kernels.signals.apiece import draw_apiece, learn_apiece, look_apiece
from stagewise.kernels.signals.arms import learn_arms, look_arms, mistold_arms
from stagewise.kernels.signals.cells import draw_cells, learn_cells, look_cells
from stagewise.kernels.signals.declared import declare_round, mistold_safe_of_round, note_safe_of_round
from stagewise.kernels.signals.events import draw_events, look_events, mistold_events
from stagewise.kernels.signals.look import look_ridge, look_size, recall_ridge
from stagewise.kernels.signals.own import learn_own, look_own, narrow
from stagewise.kernels.signals.posterior import draw_arms, draw_ridge
from stagewise.kernels.signals.refit import learn_events
from stagewise.kernels.signals.ridge import AT_SAFE, ELSEWHERE, learn_ridge
from stagewise.kernels.signals.sampling import sample
from stagewise.kernels.signals.space import learn_space, neglected_in
from stagewise.kernels.signals.space_look import look_space, recall_space
from stagewise.kernels.signals.watch import mistold_regression, note_safe, overrun, same

STAY, RAYS, MIXTURE = 0, 1, 2
MIXING = (MIXTURE,)  # rules that draw from a mixture; all others play a point
REWARD, EVERY = 1, 2  # what is sampled


class Form(NamedTuple):
    """What a round is compiled for."""

    ridge: int = 0  # 1: some signals are linear,
    arms: int = 0  # arm by arm,
    space: int = 0  # or in a reproducing-kernel space
    sharp: int = 0  # 1: candidates that come back have sets of their own
    apiece: int = 0  # 1: some signals are linear in the context, action by action,
    cells: int = 0  # or rates by action and segment
    events: int = 0  # 1: some costs are linear and rare
    rule: int = STAY  # RAYS, MIXTURE, or STAY: always the safe action
    sampled: int = 0  # REWARD: the reward is sampled; EVERY: every signal, under a certificate
    several: int = 0  # 1: a mixture has more than one limit
    single: int = 0  # 1: there is one limit
    parts: int = 1  # how many models there are
    apart: int = 0  # 1: every signal has a part of its own, and may be missing (NaN) in what is learned
    roving: int = 0  # 1: the safe action is another one in every round, and nothing is followed

    @property
    def models(self) -> tuple[int, ...]:
        """Which kinds of models there are, as `memory.memory_kernels_for` takes them."""
        return tuple(self[: self._fields.index("rule")])

    @property
    def mixes(self) -> bool:
        """Whether its rule draws what is played from a mixture."""
        return self.rule in MIXING

    @property
    def points(self) -> bool:
        """Whether its rule plays points between the safe action and candidates: whose means only features tell."""
        return self.rule != STAY and not self.mixes and self.arms == 0


class Round(NamedTuple):
    """The two halves of a round, compiled."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    see: Callable[..., int]
    choose: Callable[..., int]
    learn_at: Callable[..., None]


@kernel
def work_size(limits: int, count: int, size: int, known: bool) -> int:
    """Return the length of the models' scratch array: n coordinates, K candidates; `known`: that are all followed."""
    followed = padded(max(count, 0) + 1)
    least = max(2 * followed, followed + 3 * size + 1 + limits, (3 + limits) * size)
    return least if known else max(least, look_size(size, count))


@kernel
def scratch_size(limits: int, count: int, size: int, known: bool) -> int:
    """Return the length of the array that rounds are worked out in (see `bounds.Workspace`)."""
    return workspace_size(limits, count) + work_size(limits, count, size, known)


@kernel
def recognised(features: Floats, known: Floats) -> bool:
    """Say whether these are the candidates that are followed."""
    if known.shape[0] != features.shape[0]:
        return False
    for candidate in range(known.shape[0]):
        for i in range(known.shape[1]):
            if known[candidate, i] != features[candidate, i]:
                return False
    return True


@kernel
def is_at(action: Floats, safe: Floats, features: Floats, index: int, step: float) -> bool:
    """Say whether an action is, to the bit, this step on this ray."""
    equal = True
    for i in range(action.size):
        equal &= action[i] == (1.0 - step) * safe[i] + step * features[index, i]
    return equal


@kernel
def first_part(layout: Ints, memory: Floats) -> tuple[Part, ...]:
    """Return the only part of a memory, in a tuple."""
    return (part_of(layout, memory, 0),)


@factory
def parts_for(count: int) -> Callable[..., tuple[Part, ...]]:
    """Return what names all parts of a memory, once for all rounds that are played with it."""
    last = count - 1
    before = parts_for(last) if count > 1 else first_part

    @kernel
    def all_parts(layout: Ints, memory: Floats) -> tuple[Part, ...]:
        return before(layout, memory) + (part_of(layout, memory, last),)

    return all_parts if count > 1 else first_part


@factory
def round_for(form: Form) -> Round:
    """Return a round of this form, compiled when it is first played."""
    ridge, arms, space, sharp, sampled, several = (
        form.ridge, form.arms, form.space, form.sharp, form.sampled, form.several,
    )  # fmt: skip
    apiece, cells, context, roving = form.apiece, form.cells, int(form.apiece or form.cells), form.roving
    events = form.events
    parts_of, pinned, certified = parts_for(form.parts), pinned_for(form.parts, form.single), int(form.sampled == EVERY)
    mixes, rays, apart = int(form.mixes), int(form.rule == RAYS), form.apart
    clips = int(form.sharp == 1 and form.sampled != EVERY)  # CAPS cuts at ceilings itself

    @kernel
    def see(
        features: Floats, known: bool, parts: tuple[Part, ...], layout: Ints, settings: Floats, memory: Floats,
        bounds: Floats, work: Floats,
    ) -> int:  # fmt: skip
        """Write the bounds of every signal; return what was declared and is contradicted, or 0."""
        safe, dispute = safe_action(layout, settings).features, 0
        for part in parts:
            found = 0
            if ridge and part.kind == RIDGE:
                if sharp:
                    # along a ray whose safe action is learned, bounds bend; of the round's own a bound is declared
                    straight = bool(mixes) or bool(roving) or part.anchored == 1
                    look_own(part, features, safe, known, straight, settings, memory, bounds, work)
                elif known:
                    recall_ridge(part, settings, memory, bounds, work)
                else:
                    look_ridge(part, features, safe, settings, memory, bounds, work)
                found = mistold_regression(part, settings, memory, 0.0)
                if roving:
                    begun = mistold_safe_of_round(part, settings)
                    found = begun if found == 0 else found
            if arms and part.kind == ARMS:
                look_arms(layout, part, settings, memory, bounds)
                found = mistold_arms(layout, part, settings, memory)
            if space and part.kind == SPACE:
                if known:
                    recall_space(layout, part, settings, memory, bounds, work)
                else:
                    look_space(layout, part, features, settings, memory, bounds, work)
                found = mistold_regression(part, settings, memory, neglected_in(part, memory))
            if apiece and part.kind == APIECE:
                found = look_apiece(layout, part, features, settings, memory, bounds, work)
            if cells and part.kind == CELLS:
                found = look_cells(layout, part, features, settings, memory, bounds)
            if context and settings[ALARM] == math.inf:
                found = 0
            if events and part.kind == EVENTS:
                look_events(part, features, safe, settings, memory, bounds)
                found = mistold_events(part, memory)
            dispute = found if dispute == 0 else dispute
        if clips:
            cut_at_ceilings(layout, settings, bounds, bool(mixes))
        if dispute == 0 and settings[ALARM] < math.inf:
            dispute = overrun(layout, settings, bounds)
        if roving:
            begun = declare_round(layout, settings, bounds, sampled != REWARD)
            if dispute == 0 and settings[ALARM] < math.inf:
                dispute = begun
        return dispute

    @kernel
    def choose(
        features: Floats, known: bool, eligible: Flags, dispute: int, parts: tuple[Part, ...], layout: Ints,
        settings: Floats, memory: Floats, bounds: Floats, rule: Floats, per_limit: Floats, work: Floats, answer: Floats,
        seed: int, run: int, round_: int,
    ) -> int:  # fmt: skip
        """Choose by the bounds; return the candidate, or minus the reason for the safe action; write the answer."""
        safe, written, code = safe_action(layout, settings).features, written_in(layout, answer), -1
        action = written.action
        if certified:
            spread = spread_of(settings)
            if rays:
                exchange_crosses(bounds, rule)
            for part in parts:
                if ridge and part.kind == RIDGE:
                    draw_ridge(part, features, safe, known, spread, settings, bounds, seed, run, round_, work)
                if arms and part.kind == ARMS:
                    draw_arms(layout, part, spread, settings, memory, bounds, seed, run, round_)
                if apiece and part.kind == APIECE:
                    draw_apiece(layout, part, features, spread, settings, memory, bounds, seed, run, round_)
                if cells and part.kind == CELLS:
                    draw_cells(layout, part, features, spread, settings, memory, bounds, seed, run, round_)
                if events and part.kind == EVENTS:
                    draw_events(part, features, safe, spread, settings, memory, bounds, seed, run, round_, work)
        elif sampled:
            sample(layout, parts[0], features, safe, known, settings, memory, bounds, seed, run, round_, work)
        if mixes:
            lottery = uniform(seed, run, round_, POLICY, 0)
            shares, places, factors = written.shares, written.places, per_limit[: layout[LIMITS]]
            basis = per_limit[layout[LIMITS] :] if several else None
            if certified:
                code = choose_certified_mixture(
                    layout, settings, bounds, eligible, dispute, rule, factors, basis, shares, places, lottery, answer
                )
            else:
                code = choose_mixture(
                    layout, settings, bounds, eligible, dispute, rule, factors, basis, shares, places, lottery, answer
                )
            for i in range(action.size):
                if context:
                    action[i] = features[code if code >= 0 else layout[HOME], i]
                else:
                    action[i] = features[code, i] if code >= 0 else safe[i]
        if rays:
            if certified:
                code = choose_certified_ray(layout, settings, bounds, eligible, dispute, rule, per_limit, answer)
            else:
                code = choose_ray(layout, settings, bounds, eligible, dispute, rule, per_limit, answer)
            settle_ray(layout, settings, bounds, rule, code, features, safe, answer, action)
        return code

    @kernel
    def decide(
        features: Floats, eligible: Flags, layout: Ints, settings: Floats, memory: Floats, answer: Floats,
        scratch: Floats, seed: int, run: int, round_: int,
    ) -> int:  # fmt: skip
        """Return the candidate that is played, or minus the reason for the safe action; write the answer."""
        fixed = pinned(layout)
        area = workspace_in(fixed, features.shape[0], scratch)
        known = recognised(features, known_actions(fixed, settings, memory).followed)
        answer[UNFOLLOWED] = 0.0 if known or memory[FOLLOWED] == NEVER else 1.0
        parts = parts_of(fixed, memory)
        dispute = see(features, known, parts, fixed, settings, memory, area.bounds, area.work)
        return choose(
            features, known, eligible, dispute, parts, fixed, settings, memory, area.bounds, area.rule, area.per_limit,
            area.work, answer, seed, run, round_,
        )  # fmt: skip

    @kernel
    def learn_at(
        parts: tuple[Part, ...], action: Floats, index: int, place: int, step: float, lean: bool, values: Floats,
        layout: Ints, settings: Floats, memory: Floats, work: Floats,
    ) -> None:  # fmt: skip
        """Take in the reward and the costs (1 + m,) of a candidate; `place`: where it lies among the followed ones.

        Where parts are `apart`, a signal that is NaN is not there yet, and its part stays as it is.
        """
        at_safe = same(action, safe_action(layout, settings).features)
        for part in parts:
            seen = values[part.first : part.first + part.signals]
            if apart:  # noqa: SIM102 - by itself it is not compiled where nothing is apart
                if math.isnan(seen[0]):
                    continue
            if ridge and part.kind == RIDGE:
                learn_ridge(part, action, place, step, lean, seen, settings, memory, work)
            if arms and part.kind == ARMS:
                learn_arms(part, index if index >= 0 else layout[HOME], seen, settings, memory)
            if apiece and part.kind == APIECE:
                learn_apiece(part, action, seen, settings, memory, work)
            if cells and part.kind == CELLS:
                learn_cells(part, action, seen[0], settings, memory)
            if space and part.kind == SPACE:
                learn_space(layout, part, action, lean, seen, settings, memory, work)
            if events and part.kind == EVENTS:
                learn_events(part, action, seen, settings, memory)
            if roving:
                if part.kind == RIDGE:
                    note_safe_of_round(layout, part, at_safe, settings, seen, work)
            elif (ridge or space) and at_safe and (part.kind == RIDGE or part.kind == SPACE):
                note_safe(part, settings, memory, seen)
            if sharp and part.kind == RIDGE:
                learn_own(part, place, step, at_safe, seen, settings)
                narrow(part, settings, work)

    @kernel
    def learn(
        action: Floats, index: int, step: float, values: Floats, layout: Ints, settings: Floats, memory: Floats,
        work: Floats,
    ) -> None:  # fmt: skip
        """Take in the reward and the costs (1 + m,) of an action; where it lies is only believed if it is so."""
        place, fixed = index, pinned(layout)
        if ridge:
            known = known_actions(fixed, settings, memory)
            count = known.followed.shape[0]
            if (
                count == 0
                or index >= count
                or (index >= 0 and not is_at(action, known.safe, known.followed, index, step))
                or (index == AT_SAFE and not same(action, known.safe))
            ):
                place = ELSEWHERE
        learn_at(parts_of(fixed, memory), action, index, place, step, False, values, fixed, settings, memory, work)

    return Round(decide, learn, see, choose, learn_at)
