"""The patients of the International Warfarin Pharmacogenetics Consortium: what is known of each, and the right dose."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stagewise.engine.compile import Floats
from stagewise_studies.columns import Columns

Text = NDArray[np.str_]
DOSE, STABLE = "Therapeutic Dose of Warfarin", "Subject Reached Stable Dose of Warfarin"
INDUCERS = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
USUAL_DECADE = 6.0  # 60 to 69 years, the middle one of the patients


class Patients(NamedTuple):
    """A column for each thing known; what was missing is filled in as said in `patients_of`."""

    right: Floats  # the stable weekly dose in mg
    decade: Floats
    height: Floats
    weight: Floats
    race: Text
    vkorc1: Text  # -1639 G>A: "G/G", "A/G", "A/A" or "unknown"
    cyp2c9: Text
    inducer: Floats
    amiodarone: Floats
    missing: dict[str, int]  # how many were filled in


def build_patients(table: Columns) -> Patients:
    """Return those who reached a stable dose that is known.

    Height and weight that are missing become the median of the patient's sex, a missing age 60 to 69; a genotype stays
    "unknown", which the published formulas have a term for; a drug that is not mentioned was not taken.
    """
    doses, stable = numbers(table[DOSE]), numbers(table[STABLE])
    kept = {name: column[np.isfinite(doses) & (stable == 1.0)] for name, column in table.items()}
    ages, sexes = texts(kept["Age"]), texts(kept["Gender"])
    sizes = {name: numbers(kept[name]) for name in ("Height (cm)", "Weight (kg)")}
    vkorc1, cyp2c9 = texts(kept["VKORC1     -1639 consensus"]), texts(kept["CYP2C9 consensus"])
    amiodarone = numbers(kept["Amiodarone (Cordarone)"])
    missing = {
        "age": int((ages == "unknown").sum()),
        **{name.split()[0].lower(): int(np.isnan(column).sum()) for name, column in sizes.items()},
        "VKORC1": int((vkorc1 == "unknown").sum()),
        "CYP2C9": int((cyp2c9 == "unknown").sum()),
        "amiodarone": int(np.isnan(amiodarone).sum()),
    }
    return Patients(
        right=numbers(kept[DOSE]),
        decade=np.array([USUAL_DECADE if age == "unknown" else float(age[0]) for age in ages.tolist()]),
        height=fill_missing(sizes["Height (cm)"], sexes),
        weight=fill_missing(sizes["Weight (kg)"], sexes),
        race=np.char.replace(texts(kept["Race (OMB)"]), "Unknown", "unknown"),
        vkorc1=vkorc1,
        cyp2c9=cyp2c9,
        inducer=np.any([numbers(kept[name]) == 1.0 for name in INDUCERS], axis=0).astype(float),
        amiodarone=np.nan_to_num(amiodarone),
        missing=missing,
    )


def numbers(column: NDArray[np.generic]) -> Floats:
    """Return a column as numbers, NaN where there is none."""
    return np.asarray(column, dtype=np.float64)


def texts(column: NDArray[np.generic]) -> Text:
    """Return a column as text, "unknown" where there is none."""
    return np.array([value.strip() if isinstance(value, str) else "unknown" for value in column.tolist()])


def fill_missing(column: Floats, groups: Text) -> Floats:
    """Return a column whose gaps are the median of their group, or of everybody where the group has none."""
    complete = column.copy()
    for group in np.unique(groups):
        in_group = groups == group
        known = column[in_group & np.isfinite(column)]
        complete[in_group & np.isnan(column)] = np.median(known if known.size else column[np.isfinite(column)])
    return complete


def pharmacogenetic(who: Patients) -> Floats:
    """Return the weekly dose that the consortium's pharmacogenetic formula gives (N Engl J Med 2009; 360: 753-764).

    Alleles of CYP2C9 that it has no term for count as *1.
    """
    root = 5.6044 - 0.2614 * who.decade + 0.0087 * who.height + 0.0128 * who.weight
    root += terms(who.vkorc1, {"A/G": -0.8677, "A/A": -1.6974, "unknown": -0.4854})
    root += terms(
        who.cyp2c9,
        {"*1/*2": -0.5211, "*1/*3": -0.9357, "*2/*2": -1.0616, "*2/*3": -1.9206, "*3/*3": -2.3312, "unknown": -0.2188},
    )
    root += terms(who.race, {"Asian": -0.1092, "Black or African American": -0.2760, "unknown": -0.1032})
    return np.asarray((root + 1.1816 * who.inducer - 0.5503 * who.amiodarone) ** 2)


def clinical(who: Patients) -> Floats:
    """Return the weekly dose of the same consortium's formula without genotypes."""
    root = 4.0376 - 0.2546 * who.decade + 0.0118 * who.height + 0.0134 * who.weight
    root += terms(who.race, {"Asian": -0.6752, "Black or African American": 0.4060, "unknown": 0.0443})
    return np.asarray((root + 1.2799 * who.inducer - 0.5695 * who.amiodarone) ** 2)


def terms(column: Text, values: dict[str, float]) -> Floats:
    """Return what each label adds; nothing where it is not named."""
    return np.array([values.get(label, 0.0) for label in column.tolist()])
