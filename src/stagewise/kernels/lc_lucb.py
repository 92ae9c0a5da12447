"""LC-LUCB (Algorithm 1), ROFUL and LinUCB: look at the rays, take the best safe point."""

from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.following import copy_estimates, recognised
from stagewise.kernels.linear import Mind, mistold, named_mind, named_promise_of, see
from stagewise.kernels.ray import choose, pessimistic, settle
from stagewise.kernels.shape import named_shape
from stagewise.kernels.sight import Sight, named_sight


@kernel
def decide(
    features: Floats, eligible: Flags, flags: Ints, numbers: Floats, memory: Floats, sheet: Floats, work: Floats
) -> int:
    """Return the ray to `features` (M, d) that is taken, or minus the reason for the safe action; write the verdict."""
    mind = named_mind(flags, numbers, memory)
    sight = named_sight(mind.shape, sheet, features.shape[0])
    known = recognised(features, mind.followed)
    if known:
        copy_estimates(mind, sight)
    return take(features, known, eligible, mind, sight, work)


@kernel
def take(features: Floats, known: bool, eligible: Flags, mind: Mind, sight: Sight, work: Floats) -> int:
    """Decide; `known`: these are the followed rays."""
    see(features, known, mind, sight, work)
    ray = choose(sight, mind.promise, eligible, mistold(mind))
    settle(sight, mind.promise, features, mind.safe, ray)
    return ray


@kernel
def fill_dearest(flags: Ints, numbers: Floats, sheet: Floats, dearest: Floats) -> None:
    """Write the pessimistic costs (m, M) at every ray's own step, for people to read."""
    shape = named_shape(flags)
    sight = named_sight(shape, sheet, dearest.shape[1])
    promise = named_promise_of(shape, numbers)
    for j in range(dearest.shape[0]):
        for ray in range(dearest.shape[1]):
            dearest[j, ray] = pessimistic(sight, promise, j, ray, sight.steps[ray])
