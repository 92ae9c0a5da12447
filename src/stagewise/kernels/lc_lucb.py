"""LC-LUCB (Algorithm 1), ROFUL and LinUCB: look at the rays, take the best safe point."""

from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.linear import named_shape, named_sight, named_terms, reward_ridge, see
from stagewise.kernels.ray import choose, pessimistic, settle


@kernel
def decide(
    features: Floats, eligible: Flags, flags: Ints, numbers: Floats, memory: Floats, sheet: Floats, work: Floats
) -> int:
    """Return the ray to `features` (M, d) that is taken, or minus the reason for the safe action; write the verdict."""
    shape = named_shape(flags)
    terms = named_terms(shape, numbers)
    sight = named_sight(shape, sheet, features.shape[0])
    see(features, shape, terms, reward_ridge(shape, memory), memory, sight, work)
    ray = choose(sight, terms.promise, eligible)
    settle(sight, terms.promise, features, terms.safe, ray)
    return ray


@kernel
def fill_dearest(flags: Ints, numbers: Floats, sheet: Floats, dearest: Floats) -> None:
    """Write the pessimistic costs (m, M) at every ray's own step, for people to read."""
    shape = named_shape(flags)
    sight = named_sight(shape, sheet, dearest.shape[1])
    promise = named_terms(shape, numbers).promise
    for j in range(dearest.shape[0]):
        for ray in range(dearest.shape[1]):
            dearest[j, ray] = pessimistic(sight, promise, j, ray, sight.steps[ray])
