"""One round, composed of models and a rule: compute bounds, choose, learn.

`build_round` composes them. The switches of a `RoundSpec` are captured as constants, so only the code that a policy
runs is compiled.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from stagewise.engine.compile import Flags, Floats, Ints, factory, kernel
from stagewise.engine.layout import (
    ARMS,
    CACHE_DISABLED,
    CACHED,
    KERNEL_RIDGE,
    LIMITS,
    PER_ACTION_RIDGE,
    RARE_EVENTS,
    RIDGE,
    SAFE_INDEX,
    SEGMENT_RATES,
    ModelBlock,
    build_layout_reader,
    get_known_actions,
    get_model_block,
    get_posterior_scale,
    get_safe_action,
    pad_to_vector,
)
from stagewise.engine.limits import ALARM, check_ceilings, clip_at_ceilings, is_same_action
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.workspace import UNCACHED, bounds_work_size, get_decision_views, get_workspace, workspace_size
from stagewise.models.arms import check_arms, compute_arm_bounds, draw_arms, learn_arms
from stagewise.models.kernel_ridge import (
    compute_cached_kernel_ridge_bounds,
    compute_kernel_ridge_bounds,
    get_neglected_norm,
    learn_kernel_ridge,
)
from stagewise.models.per_action_ridge import compute_per_action_bounds, draw_per_action_ridge, learn_per_action_ridge
from stagewise.models.per_candidate import compute_candidate_bounds, learn_per_candidate, tighten_by_ellipsoid
from stagewise.models.per_round_ridge import apply_round_declaration, check_round_safe_action, record_round_safe_action
from stagewise.models.rare_events import (
    check_rare_events,
    compute_rare_events_bounds,
    draw_rare_events,
    learn_rare_events,
)
from stagewise.models.regression import (
    AT_SAFE,
    ELSEWHERE,
    compute_cached_ridge_bounds,
    compute_ridge_bounds,
    learn_ridge,
)
from stagewise.models.regression_tests import check_regression, record_safe_outcome
from stagewise.models.ridge import draw_ridge, sample_reward
from stagewise.models.segment_rates import compute_segment_bounds, draw_segment_rates, learn_segment_rates
from stagewise.rules.certified import choose_certified_mixture, choose_certified_ray, swap_crosses
from stagewise.rules.mixture import choose_mixture
from stagewise.rules.ray import choose_ray, finish_ray

ALWAYS_SAFE, RAYS, MIXTURE = 0, 1, 2
MIXING = (MIXTURE,)  # rules that draw from a mixture; all others play a point
REWARD, EVERY = 1, 2  # values of `sampled`


class RoundSpec(NamedTuple):
    """What a round is compiled for."""

    ridge: int = 0  # 1: some signals are linear,
    arms: int = 0  # modelled per arm,
    kernel_ridge: int = 0  # or in a reproducing-kernel space
    per_candidate: int = 0  # 1: recurring candidates have sets of their own
    per_action_ridge: int = 0  # 1: some signals are linear in the context, with a regression per action,
    segment_rates: int = 0  # or rates by action and segment
    rare_events: int = 0  # 1: some costs are linear and rare
    rule: int = ALWAYS_SAFE  # RAYS, MIXTURE, or ALWAYS_SAFE
    sampled: int = 0  # REWARD: the reward is sampled; EVERY: every signal, under a certificate
    several: int = 0  # 1: a mixture has more than one limit
    single: int = 0  # 1: there is one limit
    block_count: int = 1  # number of model blocks
    separate_models: int = 0  # 1: every signal has a block of its own, and may be missing (NaN) in an outcome
    per_round_safe: int = 0  # 1: every round has its own safe action, and nothing is cached

    @property
    def models(self) -> tuple[int, ...]:
        """The kinds of models, in the order of `memory.build_memory_kernels`."""
        return tuple(self[: self._fields.index("rule")])

    @property
    def mixes(self) -> bool:
        """Whether the rule draws the action from a mixture."""
        return self.rule in MIXING

    @property
    def points(self) -> bool:
        """Whether the rule plays points between the safe action and candidates, whose means need features."""
        return self.rule != ALWAYS_SAFE and not self.mixes and self.arms == 0


class Round(NamedTuple):
    """The compiled kernels of a round."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    compute_bounds: Callable[..., int]
    choose: Callable[..., int]
    learn_at: Callable[..., None]


@kernel
def work_size(limits: int, count: int, size: int, known: bool) -> int:
    """Return the length of the models' scratch: n coordinates, K candidates; `known`: all of them are cached."""
    cached_width = pad_to_vector(max(count, 0) + 1)
    least = max(2 * cached_width, cached_width + 3 * size + 1 + limits, (3 + limits) * size)
    return least if known else max(least, bounds_work_size(size, count))


@kernel
def scratch_size(limits: int, count: int, size: int, known: bool) -> int:
    """Return the length of the scratch array of a round (see `bounds.Workspace`)."""
    return workspace_size(limits, count) + work_size(limits, count, size, known)


@kernel
def are_cached(features: Floats, known: Floats) -> bool:
    """Return whether these are the cached candidates."""
    if known.shape[0] != features.shape[0]:
        return False
    for candidate in range(known.shape[0]):
        for i in range(known.shape[1]):
            if known[candidate, i] != features[candidate, i]:
                return False
    return True


@kernel
def is_on_ray(action: Floats, safe: Floats, features: Floats, index: int, step: float) -> bool:
    """Return whether an action is, to the bit, this step on this ray."""
    equal = True
    for i in range(action.size):
        equal &= action[i] == (1.0 - step) * safe[i] + step * features[index, i]
    return equal


@kernel
def get_only_block(layout: Ints, memory: Floats) -> tuple[ModelBlock, ...]:
    """Return the only block of a memory, in a tuple."""
    return (get_model_block(layout, memory, 0),)


@factory
def build_block_reader(count: int) -> Callable[..., tuple[ModelBlock, ...]]:
    """Return a kernel that reads all blocks of a memory, once for all rounds."""
    last = count - 1
    before = build_block_reader(last) if count > 1 else get_only_block

    @kernel
    def read_all_blocks(layout: Ints, memory: Floats) -> tuple[ModelBlock, ...]:
        return before(layout, memory) + (get_model_block(layout, memory, last),)

    return read_all_blocks if count > 1 else get_only_block


@factory
def build_round(round_spec: RoundSpec) -> Round:
    """Return a round of this form, compiled when it is first played."""
    ridge, arms, kernel_ridge, per_candidate, sampled, several = (
        round_spec.ridge, round_spec.arms, round_spec.kernel_ridge, round_spec.per_candidate, round_spec.sampled,
        round_spec.several,
    )  # fmt: skip
    per_action_ridge, segment_rates, context, per_round_safe = (
        round_spec.per_action_ridge,
        round_spec.segment_rates,
        int(round_spec.per_action_ridge or round_spec.segment_rates),
        round_spec.per_round_safe,
    )
    rare_events = round_spec.rare_events
    read_blocks, read_layout, certified = (
        build_block_reader(round_spec.block_count),
        build_layout_reader(round_spec.block_count, round_spec.single),
        int(round_spec.sampled == EVERY),
    )
    mixes, rays, separate_models = int(round_spec.mixes), int(round_spec.rule == RAYS), round_spec.separate_models
    clips = int(round_spec.per_candidate == 1 and round_spec.sampled != EVERY)  # CAPS clips at ceilings itself

    @kernel
    def compute_bounds(
        features: Floats, known: bool, blocks: tuple[ModelBlock, ...], layout: Ints, settings: Floats, memory: Floats,
        bounds: Floats, work: Floats,
    ) -> int:  # fmt: skip
        """Write the bounds of every signal; return the code of a contradiction, or 0."""
        safe, contradiction = get_safe_action(layout, settings).features, 0
        for block in blocks:
            found = 0
            if ridge and block.kind == RIDGE:
                if per_candidate:
                    # bounds are curved along a ray whose safe action is learned, unless they are declared
                    straight = bool(mixes) or bool(per_round_safe) or block.anchored == 1
                    compute_candidate_bounds(block, features, safe, known, straight, settings, memory, bounds, work)
                elif known:
                    compute_cached_ridge_bounds(block, settings, memory, bounds, work)
                else:
                    compute_ridge_bounds(block, features, safe, settings, memory, bounds, work)
                found = check_regression(block, settings, memory, 0.0)
                if per_round_safe:
                    round_contradiction = check_round_safe_action(block, settings)
                    found = round_contradiction if found == 0 else found
            if arms and block.kind == ARMS:
                compute_arm_bounds(layout, block, settings, memory, bounds)
                found = check_arms(layout, block, settings, memory)
            if kernel_ridge and block.kind == KERNEL_RIDGE:
                if known:
                    compute_cached_kernel_ridge_bounds(layout, block, settings, memory, bounds, work)
                else:
                    compute_kernel_ridge_bounds(layout, block, features, settings, memory, bounds, work)
                found = check_regression(block, settings, memory, get_neglected_norm(block, memory))
            if per_action_ridge and block.kind == PER_ACTION_RIDGE:
                found = compute_per_action_bounds(layout, block, features, settings, memory, bounds, work)
            if segment_rates and block.kind == SEGMENT_RATES:
                found = compute_segment_bounds(layout, block, features, settings, memory, bounds)
            if context and settings[ALARM] == math.inf:
                found = 0
            if rare_events and block.kind == RARE_EVENTS:
                compute_rare_events_bounds(block, features, safe, settings, memory, bounds)
                found = check_rare_events(block, memory)
            contradiction = found if contradiction == 0 else contradiction
        if clips:
            clip_at_ceilings(layout, settings, bounds, bool(mixes))
        if contradiction == 0 and settings[ALARM] < math.inf:
            contradiction = check_ceilings(layout, settings, bounds)
        if per_round_safe:
            round_contradiction = apply_round_declaration(layout, settings, bounds, sampled != REWARD)
            if contradiction == 0 and settings[ALARM] < math.inf:
                contradiction = round_contradiction
        return contradiction

    @kernel
    def choose(
        features: Floats, known: bool, eligible: Flags, contradiction: int, blocks: tuple[ModelBlock, ...],
        layout: Ints, settings: Floats, memory: Floats, bounds: Floats, rule: Floats, per_limit: Floats, work: Floats,
        answer: Floats, seed: int, run: int, round_: int,
    ) -> int:  # fmt: skip
        """Choose by the bounds; return the candidate, or minus the reason code of the safe action; write the answer."""
        safe, views, code = get_safe_action(layout, settings).features, get_decision_views(layout, answer), -1
        action = views.action
        if certified:
            posterior_scale = get_posterior_scale(settings)
            if rays:
                swap_crosses(bounds, rule)
            for block in blocks:
                if ridge and block.kind == RIDGE:
                    draw_ridge(block, features, safe, known, posterior_scale, settings, bounds, seed, run, round_, work)
                if arms and block.kind == ARMS:
                    draw_arms(layout, block, posterior_scale, settings, memory, bounds, seed, run, round_)
                if per_action_ridge and block.kind == PER_ACTION_RIDGE:
                    draw_per_action_ridge(
                        layout, block, features, posterior_scale, settings, memory, bounds, seed, run, round_
                    )
                if segment_rates and block.kind == SEGMENT_RATES:
                    draw_segment_rates(
                        layout, block, features, posterior_scale, settings, memory, bounds, seed, run, round_
                    )
                if rare_events and block.kind == RARE_EVENTS:
                    draw_rare_events(
                        block, features, safe, posterior_scale, settings, memory, bounds, seed, run, round_, work
                    )
        elif sampled:
            sample_reward(layout, blocks[0], features, safe, known, settings, memory, bounds, seed, run, round_, work)
        if mixes:
            uniform_draw = uniform(seed, run, round_, POLICY, 0)
            shares, indices, factors = views.shares, views.places, per_limit[: layout[LIMITS]]
            basis = per_limit[layout[LIMITS] :] if several else None
            if certified:
                code = choose_certified_mixture(
                    layout,
                    settings,
                    bounds,
                    eligible,
                    contradiction,
                    rule,
                    factors,
                    basis,
                    shares,
                    indices,
                    uniform_draw,
                    answer,
                )
            else:
                code = choose_mixture(
                    layout,
                    settings,
                    bounds,
                    eligible,
                    contradiction,
                    rule,
                    factors,
                    basis,
                    shares,
                    indices,
                    uniform_draw,
                    answer,
                )
            for i in range(action.size):
                if context:
                    action[i] = features[code if code >= 0 else layout[SAFE_INDEX], i]
                else:
                    action[i] = features[code, i] if code >= 0 else safe[i]
        if rays:
            if certified:
                code = choose_certified_ray(layout, settings, bounds, eligible, contradiction, rule, per_limit, answer)
            else:
                code = choose_ray(layout, settings, bounds, eligible, contradiction, rule, per_limit, answer)
            finish_ray(layout, settings, bounds, rule, code, features, safe, answer, action)
        return code

    @kernel
    def decide(
        features: Floats, eligible: Flags, layout: Ints, settings: Floats, memory: Floats, answer: Floats,
        scratch: Floats, seed: int, run: int, round_: int,
    ) -> int:  # fmt: skip
        """Return the candidate that is played, or minus the reason code of the safe action; write the answer."""
        fixed = read_layout(layout)
        workspace = get_workspace(fixed, features.shape[0], scratch)
        known = are_cached(features, get_known_actions(fixed, settings, memory).cached)
        answer[UNCACHED] = 0.0 if known or memory[CACHED] == CACHE_DISABLED else 1.0
        blocks = read_blocks(fixed, memory)
        contradiction = compute_bounds(
            features, known, blocks, fixed, settings, memory, workspace.bounds, workspace.work
        )
        return choose(
            features, known, eligible, contradiction, blocks, fixed, settings, memory, workspace.bounds, workspace.rule,
            workspace.per_limit, workspace.work, answer, seed, run, round_,
        )  # fmt: skip

    @kernel
    def learn_at(
        blocks: tuple[ModelBlock, ...], action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
        values: Floats, layout: Ints, settings: Floats, memory: Floats, work: Floats,
    ) -> None:  # fmt: skip
        """Learn the reward and the costs (1 + m,) of a candidate; `cached_index`: its index in the cache.

        With `separate_models`, a NaN signal has not arrived yet, and its block is unchanged.
        """
        at_safe = is_same_action(action, get_safe_action(layout, settings).features)
        for block in blocks:
            observed = values[block.first : block.first + block.signals]
            if separate_models:  # noqa: SIM102 - nested, so that it is not compiled where it is off
                if math.isnan(observed[0]):
                    continue
            if ridge and block.kind == RIDGE:
                learn_ridge(block, action, cached_index, step, cached_only, observed, settings, memory, work)
            if arms and block.kind == ARMS:
                learn_arms(block, index if index >= 0 else layout[SAFE_INDEX], observed, settings, memory)
            if per_action_ridge and block.kind == PER_ACTION_RIDGE:
                learn_per_action_ridge(block, action, observed, settings, memory, work)
            if segment_rates and block.kind == SEGMENT_RATES:
                learn_segment_rates(block, action, observed[0], settings, memory)
            if kernel_ridge and block.kind == KERNEL_RIDGE:
                learn_kernel_ridge(layout, block, action, cached_only, observed, settings, memory, work)
            if rare_events and block.kind == RARE_EVENTS:
                learn_rare_events(block, action, observed, settings, memory)
            if per_round_safe:
                if block.kind == RIDGE:
                    record_round_safe_action(layout, block, at_safe, settings, observed, work)
            elif (ridge or kernel_ridge) and at_safe and (block.kind == RIDGE or block.kind == KERNEL_RIDGE):
                record_safe_outcome(block, settings, memory, observed)
            if per_candidate and block.kind == RIDGE:
                learn_per_candidate(block, cached_index, step, at_safe, observed, settings)
                tighten_by_ellipsoid(block, settings, work)

    @kernel
    def learn(
        action: Floats, index: int, step: float, values: Floats, layout: Ints, settings: Floats, memory: Floats,
        work: Floats,
    ) -> None:  # fmt: skip
        """Learn the reward and the costs (1 + m,) of an action; its index is used only after it is checked."""
        cached_index, fixed = index, read_layout(layout)
        if ridge:
            known = get_known_actions(fixed, settings, memory)
            count = known.cached.shape[0]
            if (
                count == 0
                or index >= count
                or (index >= 0 and not is_on_ray(action, known.safe, known.cached, index, step))
                or (index == AT_SAFE and not is_same_action(action, known.safe))
            ):
                cached_index = ELSEWHERE
        learn_at(
            read_blocks(fixed, memory), action, index, cached_index, step, False, values, fixed, settings, memory, work
        )

    return Round(decide, learn, compute_bounds, choose, learn_at)
