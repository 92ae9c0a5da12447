"""Candidates that come back: recognise them, begin and end following them, read what is kept of them."""

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.linear import NEVER, Mind, named_mind
from stagewise.kernels.ridge import Ridge, follow
from stagewise.kernels.shape import together
from stagewise.kernels.sight import Sight


@kernel
def copy_table(source: Floats, target: Floats) -> None:
    for row in range(source.shape[0]):
        for i in range(source.shape[1]):
            target[row, i] = source[row, i]


@kernel
def copy_ridge(old: Ridge, new: Ridge) -> None:
    copy_table(old.root, new.root)
    copy_table(old.fits, new.fits)
    for i in range(old.tally.size):
        new.tally[i] = old.tally[i]


@kernel
def change_followed(
    features: Floats, flags: Ints, numbers: Floats, memory: Floats, changed: Floats, work: Floats
) -> None:
    """Write the same memory following these candidates (M, d); with none, it never follows any again."""
    changed[0], changed[1] = memory[0], features.shape[0] if features.shape[0] > 0 else NEVER
    old, new = named_mind(flags, numbers, memory), named_mind(flags, numbers, changed)
    copy_ridge(old.reward.ridge, new.reward.ridge)
    copy_ridge(old.costs.ridge, new.costs.ridge)
    follow(features, new.reward, work[: new.reward.ridge.root.shape[0]])
    follow(features, new.costs, work[: new.costs.ridge.root.shape[0]])
    copy_table(features, new.followed)


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
def remembered(mind: Mind, sight: Sight, sampled: bool) -> Sight:
    """Return the sight of the followed candidates, whose estimates stand in the memory; `sampled`: but the rewards'."""
    own = mind.reward.followed.estimates
    count = own.shape[1]
    costs = own.reshape(own.size)[count:] if together(mind.shape) else mind.costs.followed.estimates.reshape(-1)
    return Sight(
        sight.rewards if sampled else own[0],
        costs.reshape(mind.shape.constraints, count),
        sight.reward_view,
        sight.cost_view,
        sight.reward_widths,
        sight.cost_widths,
        sight.reward_crosses,
        sight.cost_crosses,
        sight.start,
        sight.radii,
        sight.hoped,
        sight.steps,
        sight.reaches,
        sight.verdict,
        sight.action,
    )


@kernel
def copy_estimates(mind: Mind, sight: Sight) -> None:
    """Write the estimates of the followed candidates into the sheet, for people to read."""
    seen = remembered(mind, sight, False)
    for candidate in range(seen.rewards.size):
        sight.rewards[candidate] = seen.rewards[candidate]
    copy_table(seen.costs, sight.costs)
