"""From a policy and a world to the arrays that the compiled loops play with."""

from typing import Any

import numpy as np

from stagewise.kernels import kernel_oplb, linear
from stagewise.kernels.audit import HOPELESS, MISSED, UNKNOWN, fill_truths
from stagewise.kernels.blend import odds_size
from stagewise.kernels.compile import Flags, Floats, Ints
from stagewise.kernels.sight import sheet_size
from stagewise.kernels.trace import Trace
from stagewise.kernels.world import Truth
from stagewise.policies.always_safe import AlwaysSafe
from stagewise.policies.doslb import DOSLB
from stagewise.policies.kernel_memory import following as following_listed
from stagewise.policies.kernel_memory import started
from stagewise.policies.kernel_oplb import KernelOPLB
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.linear import following
from stagewise.policies.linucb import LinUCB
from stagewise.policies.opb import OPB
from stagewise.policies.oplb import OPLB
from stagewise.policies.safe_lts import INFLATIONS, SafeLTS
from stagewise.policies.ucb import UCB
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw
from stagewise.simulation.arms_loop import Bandit, arms_loop
from stagewise.simulation.judge import Judge
from stagewise.simulation.kernel_loop import Listing, listed_loop
from stagewise.simulation.mixtures_loop import mixtures_loop
from stagewise.simulation.rays_loop import rays_loop
from stagewise.simulation.safe_loop import play_safe, play_safe_arm
from stagewise.simulation.stage import Player, Room, Stage
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.fresh import Fresh
from stagewise.worlds.linear import LinearWorld
from stagewise.worlds.table import TableWorld
from stagewise.worlds.world import World


def plays(policy: Any, world: Any) -> bool:
    """Say whether the compiled loops know this policy in this world; no solver, no subclass."""
    if isinstance(policy, OPLB) and policy.method != "lp":
        return False
    if type(world) is ArmsWorld:
        return type(policy) in (OPB, UCB, AlwaysSafe)
    if type(world) is TableWorld:
        return type(policy) is KernelOPLB
    if type(world) is not LinearWorld or not world.actions.listed:
        return False
    kinds: tuple[Any, ...] = (OPLB, DOSLB, LinUCB, AlwaysSafe)
    return type(policy) in (*kinds, LCLUCB, ROFUL, SafeLTS) if world.offers_rays else type(policy) in kinds


class Compiled:
    """A compiled run that can be continued."""

    def __init__(self, policy: Any, judge: Judge, trace: Trace, seed: int, run: int) -> None:
        if not plays(policy, judge.world):
            by = f" with method {policy.method!r}" if isinstance(policy, OPLB) else ""
            raise InvalidProblem(
                f"backend='cpu' cannot play {type(policy).__name__}{by} in a {type(judge.world).__name__} like this; "
                "backend='python' plays anything with start, decide and learn"
            )
        self.policy, self.judge, self.trace = policy, judge, trace
        self.seed, self.run = seed, run
        world, constraints = judge.world, constraints_of(policy, judge.world)
        if isinstance(world, LinearWorld):
            self.stage = stage_for(judge, world)
            if type(policy) is not AlwaysSafe:
                self.player = player_for(policy, world)
        elif isinstance(world, ArmsWorld) and type(policy) is not AlwaysSafe:
            self.bandit = bandit_for(policy, judge, world)
        self.room = room_for(judge, count_of(world), constraints)
        if isinstance(world, TableWorld):
            self.listing = listing_for(policy, judge, world)
            self.room = listed_room(self.room, self.listing)
        if trace.audit.size:
            prepare(trace.audit, policy, constraints)
            filled(self.room, judge)

    def play(self, first: int, last: int) -> None:
        """Play the rounds from `first` to `last`, counted from 0."""
        room, trace, judge, where = self.room, self.trace, self.judge, (self.seed, self.run, first, last)
        audited = trace.audit.size > 0
        if type(self.policy) is AlwaysSafe:
            if isinstance(judge.world, ArmsWorld):
                best = judge.best(judge.world.actions)
                play_safe_arm(trace, best, judge.safe_means, judge.limits, first, last)
            else:
                play_safe(self.stage, room, trace, judge.mixes, *where)
        elif isinstance(judge.world, ArmsWorld):
            arms_loop(audited)(self.bandit, room, trace, room.true_flat, *where)
        elif isinstance(judge.world, TableWorld):
            listed_loop(audited)(self.listing, room, trace, *where)
        else:
            fresh = self.stage.fresh
            mixes = draws_mixtures(self.policy, judge)
            loop = mixtures_loop(fresh, audited) if mixes else rays_loop(self.player.sampled, fresh, audited)
            loop(self.player, self.stage, room, trace, judge.mixes, *where)


def draws_mixtures(policy: Any, judge: Judge) -> bool:
    """Say whether a linear policy draws from mixtures, rather than playing points on rays."""
    return type(policy) is OPLB or (type(policy) is DOSLB and judge.mixes)


def count_of(world: Any) -> int:
    """Return how many actions are listed in a round."""
    actions = world.actions
    return int(actions.count) if isinstance(actions, Fresh) else len(actions)


def eligible_in(world: Any) -> Flags:
    """Return which of a world's actions are on offer, as an array of the loops' own; empty: all."""
    actions = world.actions
    return np.empty(0, dtype=np.bool_) if isinstance(actions, Fresh) else np.array(actions.eligible)


def room_for(judge: Judge, count: int, constraints: int) -> Room:
    """Return work space for a policy with this many constraints of its own."""
    m = judge.world.costs
    d = judge.world.parameters.shape[1] if isinstance(judge.world, LinearWorld) else 0
    return Room(
        np.zeros(sheet_size(d, constraints, count)),
        np.zeros(linear.work_size(d, m, count)),
        np.zeros(odds_size(m, count)),
        np.zeros(m + 2, dtype=np.int64),
        np.zeros(odds_size(m, count)),
        np.zeros(m + 2, dtype=np.int64),
        np.zeros(1 + m),
        np.zeros(1 + m),
        eligible_in(judge.world),
        np.zeros((1 + m, count)),
    )


def prepare(audit: Ints, policy: Any, constraints: int) -> None:
    """Mark what a policy says nothing of: no interval, or no promise to hope for enough in every round."""
    learns = type(policy) is not AlwaysSafe
    audit[MISSED + (1 + constraints if learns else 0) :] = UNKNOWN
    if not learns or type(policy) is SafeLTS:
        audit[HOPELESS] = UNKNOWN


def filled(room: Room, judge: Judge) -> Room:
    """Write the true means of the candidates into the work space, where they are always the same."""
    world = judge.world
    if isinstance(world, ArmsWorld | TableWorld):
        room.truths[:] = world.table * judge.signs[:, None]
    elif isinstance(world, LinearWorld) and not isinstance(world.actions, Fresh):
        signed = world.parameters * judge.signs[:, None]
        fill_truths(signed, np.ascontiguousarray(world.actions.features), room.means, room.truths)
    return room


def constraints_of(policy: Any, world: World) -> int:
    """Return how many costs a policy has limits for."""
    if type(policy) is AlwaysSafe:
        return 0
    if isinstance(world, LinearWorld) and type(policy) is LinUCB:
        return int(policy.settings(world.parameters.shape[1])[0][1])
    return int(policy.flags[1])


def turning(signs: Floats) -> Floats:
    """Return the signs if any of them turns something around."""
    return signs if np.any(signs < 0.0) else signs[:0]


def stage_for(judge: Judge, world: LinearWorld) -> Stage:
    """Return where a linear policy plays."""
    fresh = isinstance(world.actions, Fresh)
    features = np.zeros((count_of(world), world.parameters.shape[1]))
    if not isinstance(world.actions, Fresh):
        features[:] = world.actions.features
    return Stage(
        features,
        fresh,
        Truth(world.parameters.copy(), world.noise.copy(), world.kind),
        np.array(judge.safe),
        turning(judge.signs),
        world.parameters * judge.signs[:, None],
        judge.safe_means,
        judge.limits.copy(),
        0.0 if fresh else judge.best(world.actions),
    )


def player_for(policy: Any, world: LinearWorld) -> Player:
    """Return a linear policy as its kernels see it."""
    inflation = INFLATIONS[policy.inflation] if type(policy) is SafeLTS else 0
    policy.fitting(world.actions_in(Draw()))  # refuse here what play by hand refuses
    memory = policy.start().memory
    if type(policy) is LinUCB:
        flags, numbers = policy.settings(world.parameters.shape[1])
        memory = policy.memory(policy.start(), flags, numbers)
    else:
        flags, numbers = policy.flags, policy.numbers
    if not isinstance(world.actions, Fresh):
        memory = following(world.actions.features, flags, numbers, memory)
    return Player(type(policy) is SafeLTS, flags, numbers, memory, inflation)


def bandit_for(policy: Any, judge: Judge, world: ArmsWorld) -> Bandit:
    """Return a policy over arms as its kernels see it, and the arms as they are."""
    constrained = type(policy) is OPB
    if policy.bounded and world.outcomes == "gaussian":
        raise InvalidProblem(
            f"the world's outcomes are 'gaussian' and {type(policy).__name__} takes them to lie in [0, 1]; give `noise`"
        )
    return Bandit(
        constrained,
        policy.flags,
        policy.numbers,
        policy.start().memory,
        world.table.copy(),
        world.noise.copy(),
        world.kind,
        turning(judge.signs),
        judge.limits.copy(),
        -1 if judge.safe is None else judge.safe,
        float(judge.safe_means[0]),
        judge.best(world.actions),
    )


def listing_for(policy: KernelOPLB, judge: Judge, world: TableWorld) -> Listing:
    """Return a kernel policy and the listed actions, all of which its memory follows and has room for."""
    features = np.array(policy.fitting(world.actions).features)  # refuse here what play by hand refuses
    memory = started(policy.flags, policy.numbers, min(policy.capacity, len(features) + 1))
    return Listing(
        policy.flags,
        policy.numbers,
        following_listed(world.actions.features, policy.flags, policy.numbers, memory),
        features,
        np.column_stack([world.table, world.means(judge.safe)]),
        world.noise.copy(),
        world.kind,
        turning(judge.signs),
        judge.limits.copy(),
        judge.best(world.actions),
    )


def listed_room(room: Room, listing: Listing) -> Room:
    """Return work space for a kernel policy on listed actions."""
    (count, d), m = listing.features.shape, listing.thresholds.size
    return room._replace(
        sheet=np.zeros(sheet_size(d, m, count)),
        work=np.zeros(kernel_oplb.work_size(int(listing.memory[2]), m, count)),
    )
