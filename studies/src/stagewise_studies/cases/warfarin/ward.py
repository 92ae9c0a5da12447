"""The patients as a population: what every dose does to each, by band of the dose that a published formula predicts."""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise_studies.cases.warfarin.patients import Patients, clinical, pharmacogenetic
from stagewise_studies.replay import People
from stagewise_studies.tally import encode_groups

DOSES = np.array([14.0, 21.0, 28.0, 35.0, 42.0, 49.0])  # mg a week: 2 to 7 mg a day
NAMES = tuple(f"{dose:.0f} mg" for dose in DOSES)
EDGES = (14.0, 21.0, 28.0, 35.0, 42.0)
BANDS = ("below 14", "14 to 21", "21 to 28", "28 to 35", "35 to 42", "42 and more")
RACE = "band and race"
MARGIN = 0.2  # of the right dose: within it is right, above it is too high


class Ward(NamedTuple):
    """Everybody, and those for whom 14 mg is a safe start."""

    everybody: People
    people: People
    formulas: dict[str, Floats]  # the dose for each of `people`
    missing: dict[str, int]


def build_ward(patients: Patients) -> Ward:
    """Return the patients as a population, with and without those whose predicted dose is below the safe one."""
    predicted, by_hand = pharmacogenetic(patients), clinical(patients)
    fit = predicted >= DOSES[0]
    formulas = {"the clinical formula": by_hand[fit], "the pharmacogenetic formula": predicted[fit]}
    chosen = Patients._make([column[fit] for column in patients[:-1]] + [patients.missing])
    return Ward(population(patients, predicted), population(chosen, predicted[fit], 1), formulas, patients.missing)


def population(who: Patients, predicted: Floats, lowest: int = 0) -> People:
    """Return what each dose does to each patient: right within a fifth of the right dose, too high above it."""
    right = who.right[:, np.newaxis]
    band = np.digitize(predicted, EDGES)
    labels = {
        "band and VKORC1": [f"{BANDS[b]}, {g}" for b, g in zip(band, who.vkorc1, strict=True)],
        RACE: [f"{BANDS[b]}, {r}" for b, r in zip(band, who.race, strict=True)],
        "half a band": [f"{3.5 * (p // 3.5):g} and more" for p in np.minimum(predicted, 52.4).tolist()],
    }
    ways = {way: encode_groups(of) for way, of in labels.items()}
    contexts = [
        {"band": BANDS[b], RACE: label, "predicted": p}
        for b, label, p in zip(band, labels[RACE], np.clip(predicted, 0.0, 120.0).tolist(), strict=True)
    ]
    return People(
        actions=NAMES,
        contexts=contexts,
        reward=(np.abs(DOSES - right) <= MARGIN * right).astype(float),
        cost=((1.0 + MARGIN) * right < DOSES).astype(float),
        groups={"band": band - lowest, **{way: of for way, (of, _) in ways.items()}},
        labels={"band": BANDS[lowest:], **{way: names for way, (_, names) in ways.items()}},
    )
