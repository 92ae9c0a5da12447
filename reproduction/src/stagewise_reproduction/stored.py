"""Results that the authors stored in their public repository, for comparison with ours.

The repository is github.com/pacchiano/constrainedBandits; its last commit is of 3 October 2020. Each file is a pickle
with the mean and the standard deviation of the regret over ten runs, logged every hundredth round, of 10⁶ rounds. The
numbers below are the last entries, after 999,901 rounds.

The article prints none of these numbers, and the files that its figures include are not in that repository. So it is
an inference that these results made the published curves: their optimum costs 0.561, as the caption of Figure 1 says.
Nothing is stored of d = 3, and of arms only runs of 100 and 1,000 rounds.
"""

from typing import NamedTuple

REPOSITORY = "github.com/pacchiano/constrainedBandits"
LAST_COMMIT = "56a2815b9d11c669502cbbd9dce21d3d28269822"  # 3 October 2020
FIGURE_1_COMMIT = (
    "ea09a7651a233ec8ea4033259a36f3f5a0ac1c8f"  # 15 September 2020: its files, and the code that made them
)
ROUNDS, RUNS = 1_000_000, 10
LABELS = {"LC-LUCB": "HPLC-LUCB", "Safe-LTS": "Safe-LTS"}  # as files are named


class StoredResult(NamedTuple):
    """The final regret of a file: mean and standard deviation over runs."""

    file: str
    mean: float
    deviation: float


def build_path(policy: str, dimension: int, threshold: float | None) -> str:
    """Return the path of a file in the repository; without a threshold, the random instances of Figure 2."""
    folder = f"linear_experiments/data/{'T' if threshold else 'RandomT'}{ROUNDS}"
    limit = f"{threshold:g}_" if threshold else ""
    return f"{folder}/data_linear_{limit}{LABELS[policy]}_{ROUNDS}_{dimension}.p"


STORED = {
    (policy, dimension, threshold): StoredResult(build_path(policy, dimension, threshold), mean, deviation)
    for policy, dimension, threshold, mean, deviation in (
        ("LC-LUCB", 5, 0.2, 159_671.0, 3_617.0),
        ("Safe-LTS", 5, 0.2, 197_624.2, 1_593.6),
        ("LC-LUCB", 5, 0.5, 68_421.0, 9_934.6),
        ("Safe-LTS", 5, 0.5, 225_955.0, 2_726.2),
        ("LC-LUCB", 5, 0.8, 6_024.5, 2_837.3),
        ("Safe-LTS", 5, 0.8, 74_233.0, 703.6),
        ("LC-LUCB", 10, 0.2, 226_775.4, 2_033.7),
        ("Safe-LTS", 10, 0.2, 233_568.3, 1_692.3),
        ("LC-LUCB", 10, 0.5, 144_974.1, 8_416.3),
        ("Safe-LTS", 10, 0.5, 372_915.3, 2_161.2),
        ("LC-LUCB", 10, 0.8, 33_379.8, 11_294.1),
        ("Safe-LTS", 10, 0.8, 175_321.4, 675.6),
        ("LC-LUCB", 5, None, 108_284.4, 148_147.2),
        ("Safe-LTS", 5, None, 170_563.3, 65_296.6),
        ("LC-LUCB", 10, None, 142_261.9, 156_399.7),
        ("Safe-LTS", 10, None, 483_381.7, 82_920.4),
    )
}
