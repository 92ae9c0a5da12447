"""The one loop: any model with any rule in any world, round after round."""

from collections.abc import Callable
from typing import NamedTuple

from stagewise.kernels.answer import HOPE, STEP, written_in
from stagewise.kernels.audit import count_misses, watch, weigh_hope
from stagewise.kernels.bounds import COSTS, HOPED, per_limit_size, workspace_in
from stagewise.kernels.compile import Flags, Floats, Ints, factory, kernel
from stagewise.kernels.context import fill_crossed, fill_logged, fill_logged_means, fill_plain, fill_user_means
from stagewise.kernels.layout import DIRECTIONAL, FIRST_TERM, HOME, LIMITS, safe_action
from stagewise.kernels.loop.best import best_mixture_of, best_on_rays
from stagewise.kernels.loop.pinned import pinned_for
from stagewise.kernels.loop.round import STAY, Form, parts_for, round_for
from stagewise.kernels.loop.worth import fill_mixed
from stagewise.kernels.promise import WARMING, has
from stagewise.kernels.rules.mixture import mean_of, solve
from stagewise.kernels.signals.arms import pulled
from stagewise.kernels.signals.ridge import ELSEWHERE
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import fill_directions, fill_means, fill_safe_of_round, fill_signed_outcome

DIRECTIONS, CROSSED, PLAIN, LOGGED = 1, 2, 3, 4  # what every round draws: actions, or a user in one of three forms


class World(NamedTuple):
    """The truth of a run, which only the loop and the judge know; costs are signed so that less is better."""

    parameters: Floats  # (1 + m, d) of linear signals; (1 + m, n K) the means for logged users; else empty
    truths: Floats  # (1 + m, K + 1) the mean of every candidate and, last, of the safe action
    noise: Floats  # (1 + m,) scale of each signal's noise
    signs: Floats  # (1 + m,) −1 for a cost whose threshold is from below
    thresholds: Floats  # (m,); none: nothing limits the optimum
    outcomes: int  # how they are drawn (see `world.noisy`)
    best: float  # the optimum, where the actions are always the same
    safe: int  # which of the listed actions is safe, where every round has its own; −1: another point
    drawn: Floats  # how far that point lies from 0, or (G,) the shares of segments, added up, or logged users (n w,)


class LoopForm(NamedTuple):
    """What a loop is compiled for, besides the form of its rounds."""

    fresh: int  # every round has its own actions: DIRECTIONS, CROSSED, PLAIN or LOGGED; 0: they are followed
    audited: int  # 1: the trace has an audit
    blended: int  # 1: regret is measured against the best mixture
    points: int  # 1: points between the candidates are played, so their means are looked up by features
    limited: int  # 1: more than one threshold limits the optimum
    moving: int = 0  # 1: every round has its own safe action
    begun: int = 0  # 1: the memory that it begins with has been offered these actions before


@kernel
def judging_size(m: int, count: int) -> int:
    """Return the length of the scratch array behind the optimum of a round."""
    return (3 + 2 * m) * (count + 1) + per_limit_size(m) + 2 * (m + 2)


@factory
def play_for(form: Form, loop: LoopForm) -> Callable[..., None]:
    """Return the loop for one form of round and one kind of world."""
    see, choose, learn_at = round_for(form).see, round_for(form).choose, round_for(form).learn_at
    mixes, stays = int(form.mixes), int(form.rule == STAY)
    parts_of, pinned = parts_for(form.parts), pinned_for(0 if stays else form.parts, form.single)
    sampled, several, arms, roving = form.sampled, form.several, form.arms, form.roving
    fresh, audited, blended, points, limited, moving, begun = loop
    directed, crossed, plain = int(fresh == DIRECTIONS), int(fresh == CROSSED), int(fresh == PLAIN)
    logged, unmet = int(fresh == LOGGED), -1 if begun else 0  # the round whose actions are not followed yet
    fresh, moving = int(fresh > 0), int(moving > 0 and fresh > 0)
    anew = int(fresh > 0 or roving > 0)  # what is offered is not followed
    blended, limited = blended and fresh, limited and blended and fresh  # else the optimum is given

    @kernel
    def optimum(world: World, judging: Floats, mixture: Ints) -> float:
        """Return the largest expected reward that this round's actions allow."""
        if blended:
            m, row = world.thresholds.size, world.truths.shape[1]
            end, per_limit = (3 + 2 * m) * row, (3 + 2 * m) * row + per_limit_size(m)
            rule, shares = judging[:end].reshape(3 + 2 * m, row), judging[per_limit : per_limit + m + 2]
            if limited:
                return best_mixture_of(
                    world.truths, world.thresholds, rule, judging[end + m : per_limit], shares, mixture
                )
            return best_mixture_of(world.truths, world.thresholds, rule, None, shares, mixture)
        return best_on_rays(world.truths, world.thresholds)

    @kernel
    def draw(features: Floats, safe: Floats, world: World, means: Floats, seed: int, run: int, t: int) -> None:
        """Write what is offered in a round, the safe action if it is the round's own, and the means of all."""
        count, segment = features.shape[0], 0
        if directed:
            fill_directions(features, seed, run, t)
        if crossed:
            segment = fill_crossed(features, world.drawn, seed, run, t)
        if plain:
            segment = fill_plain(features, world.drawn, seed, run, t)
        if logged:
            fill_logged_means(world.parameters, fill_logged(features, world.drawn, seed, run, t), world.truths)
        else:
            for candidate in range(count):
                if directed:
                    fill_means(world.parameters, features[candidate], means)
                else:
                    width = world.parameters.shape[1] // count
                    user = features[0, 1:] if plain else features[0]
                    fill_user_means(world.parameters, candidate, width, world.drawn.size, user, segment, means)
                for signal in range(means.size):
                    world.truths[signal, candidate] = means[signal]
        if moving:
            if directed:
                fill_safe_of_round(safe, features.size, world.drawn[0], seed, run, t)
                fill_means(world.parameters, safe, means)
                for signal in range(means.size):
                    world.truths[signal, count] = means[signal]
            else:
                for i in range(safe.size):
                    safe[i] = features[world.safe, i]
                for signal in range(means.size):
                    world.truths[signal, count] = world.truths[signal, world.safe]

    @kernel
    def play(
        features: Floats, eligible: Flags, layout: Ints, settings: Floats, memory: Floats, answer: Floats,
        scratch: Floats, judging: Floats, mixture: Ints, means: Floats, values: Floats, world: World, trace: Trace,
        seed: int, run: int, first: int, last: int,
    ) -> None:  # fmt: skip
        """Play the rounds from `first` to `last`, counted from 0."""
        fixed = pinned(layout)
        area, count, best = workspace_in(fixed, features.shape[0], scratch), features.shape[0], world.best
        bounds, rule, per_limit, work = area.bounds, area.rule, area.per_limit, area.work
        written = written_in(fixed, answer)
        action, shares, places = written.action, written.shares, written.places
        home, safe = fixed[HOME] if fixed[HOME] >= 0 else count, safe_action(fixed, settings).features
        code = -1
        if not stays:
            parts = parts_of(fixed, memory)
        for t in range(first, last):
            if fresh:
                draw(features, safe, world, means, seed, run, t)
                best = optimum(world, judging, mixture)
            if not stays:
                dispute = see(features, not anew, parts, fixed, settings, memory, bounds, work)
                code = choose(
                    features, not anew, eligible, dispute, parts, fixed, settings, memory, bounds, rule, per_limit,
                    work, answer, seed, run, t,
                )  # fmt: skip
            index = code if code >= 0 else home
            if points:
                fill_means(world.parameters, action, means)
            else:
                for signal in range(means.size):
                    means[signal] = world.truths[signal, index]
            if mixes:
                fill_mixed(world.truths, home, shares, places, values)
                note(trace, t, best, values, world.thresholds)
            else:
                note(trace, t, best, means, world.thresholds)
            if audited:
                watch(trace.audit, t, best, world.truths[0, count], values if mixes else means, world.thresholds)
                if not stays:
                    if code != -WARMING:
                        hope = answer[HOPE]
                        if mixes and has(fixed, DIRECTIONAL):  # what it hoped for before it came back
                            m = fixed[LIMITS]
                            limits = settings[FIRST_TERM + m : FIRST_TERM + 2 * m]
                            if several:
                                solve(rule, COSTS + m, limits, per_limit[m:], shares, places)
                            else:
                                solve(rule, COSTS + m, limits, None, shares, places)
                            hope = mean_of(rule[HOPED], shares, places)
                        weigh_hope(trace.audit, best, hope)
                    if sampled:  # which wrote its sample over what it believes
                        see(features, not anew, parts, fixed, settings, memory, bounds, work)
                    if arms:
                        pulls = pulled(parts[0], memory).table[:count]
                        count_misses(trace.audit, bounds, world.truths, pulls)
                    else:
                        count_misses(trace.audit, bounds, world.truths, per_limit[:0])
            if not stays:
                fill_signed_outcome(world.outcomes, means, world.noise, world.signs, seed, run, t, values)
                place = ELSEWHERE if anew or t == unmet else max(code, -1)  # what is offered first is not followed yet
                learn_at(parts, action, code, place, answer[STEP], not anew, values, fixed, settings, memory, work)

    return play
