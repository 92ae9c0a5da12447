"""What `stagewise show` says of the folders that simulations, certificates and the reproduction leave."""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from stagewise.cli.show import picture
from stagewise.problem.words import several
from stagewise.reports.certificate import Certificate
from stagewise.reports.certificate_words import headline
from stagewise.reports.comparison import tabled
from stagewise.reports.picture import drawn
from stagewise.reports.result import Result
from stagewise.reports.sealed import MANIFEST
from stagewise.reports.style import write_picture

CELLS = "*/*/*/*/" + MANIFEST  # of a sweep: policy, world, limits, seed
TABLE = "comparison.md"
AGAIN = "run the same command again to continue"


def result(path: Path) -> str | None:
    """What `simulate` wrote."""
    if not (path / MANIFEST).is_file():
        return None
    found = Result.load(path)
    redrawn(lambda: picture(found, path))
    limits = ", ".join(f"{name} {value:g}" for name, value in found.manifest["thresholds"].items()) or "none"
    return f"{found!r}\nLimits: {limits}\n\n{tabled({found.manifest['policy']['kind']: found})}"


def comparison(path: Path) -> str | None:
    """What `compare` wrote; or any folder with results in it, where nothing is drawn."""
    places = sorted(path.glob(f"*/{MANIFEST}"))
    if not places:
        return None
    found = {place.parent.name: Result.load(place.parent) for place in places}
    ours = (path / TABLE).is_file()
    if ours:
        redrawn(lambda: write_picture(drawn(found), path / "comparison.png"))
    policies = "1 policy" if len(found) == 1 else f"{len(found)} policies"
    what = f"A comparison of {policies}" if ours else f"{several(len(found), 'result')} below this folder"
    return f"{what}{unplayed(path, 1)}\n\n{tabled(found)}"


def sweep(path: Path) -> str | None:
    """What `sweep` wrote."""
    places = sorted(path.glob(CELLS))
    if not places:
        return None
    found = {", ".join(place.parent.relative_to(path).parts): Result.load(place.parent) for place in places}
    return f"A sweep of {several(len(found), 'cell')}{unplayed(path, 4)}\n\n{tabled(found)}"


def certificate(path: Path) -> str | None:
    """What `certify` wrote: the folder, or the file."""
    file = path / "certificate.json" if path.is_dir() else path
    if not file.is_file() or (path.is_file() and not is_certificate(path)):
        return None
    told = Certificate.load(file)
    page = file.with_name("certificate.html")
    seen = f"\nThe page: {page}" if page.is_file() else ""
    return f"{told.verdict}: {headline(told.content)}{seen}\nWhether it is true: stagewise certify --verify {file}"


def certificates(path: Path) -> str | None:
    """Several certificates below a folder."""
    places = sorted(path.glob("*/certificate.json"))
    if not places:
        return None
    told = {place.parent.name: Certificate.load(place) for place in places}
    wide = max(map(len, told))
    rows = [f"  {name:{wide}}  {one.verdict}: {headline(one.content)}" for name, one in told.items()]
    return "\n".join([f"{several(len(rows), 'certificate')}:", *rows])


def reproduction(path: Path) -> str | None:
    """What `reproduce` wrote."""
    runs = sum(1 for _ in path.glob(f"results/*/*/parts/*/{MANIFEST}"))
    if not runs:
        return None
    claims = plain(path / "claims.json")
    if not isinstance(claims, list):
        return f"A reproduction that is not finished: {several(runs, 'run')} kept; {AGAIN}"
    counts = Counter(str(claim.get("verdict")) for claim in claims if isinstance(claim, dict))
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    experiments = {claim.get("experiment") for claim in claims if isinstance(claim, dict)}
    return (
        f"A reproduction of {several(len(experiments), 'experiment')}, {several(len(claims), 'claim')}: {told}\n"
        f"The report: {path / 'report.html'}"
    )


def unfinished(path: Path) -> str | None:
    """What an interrupted command left."""
    plans = [path / "plan.json", *path.glob("*/plan.json"), *path.glob("*/*/*/*/plan.json")]
    if not any(plan.is_file() for plan in plans):
        return None
    kept = sum(runs_of(part.parent.name) for part in path.glob(f"**/parts/*/{MANIFEST}"))
    return f"Runs that are not finished: {several(kept, 'run')} kept; {AGAIN}"


def unplayed(path: Path, depth: int) -> str:
    """Say how many folders of a comparison or sweep were begun and not finished."""
    plans = path.glob("/".join(["*"] * depth) + "/plan.json")
    left = sum(not plan.with_name(MANIFEST).is_file() for plan in plans)
    return f"; {left} more not finished, {AGAIN}" if left else ""


def runs_of(name: str) -> int:
    """Return how many runs a part holds, by its name.

    >>> runs_of("run-000003"), runs_of("runs-000000-000099")
    (1, 100)
    """
    numbers = [int(word) for word in name.split("-")[1:] if word.isdigit()]
    return numbers[1] - numbers[0] + 1 if len(numbers) == 2 else 1


def redrawn(draw: Any) -> None:
    """Draw again, where the folder can be written to: what it holds can be told anyway."""
    from stagewise.problem.errors import InvalidFile

    with suppress(InvalidFile):
        draw()


def is_certificate(path: Path) -> bool:
    """Say whether a file looks like a certificate."""
    told = plain(path) if path.suffix == ".json" else None
    return isinstance(told, dict) and {"verdict", "violations", "plan"} <= set(told)


def plain(path: Path) -> Any:
    """Return what a JSON file holds; None: it is none."""
    from stagewise.files.paths import check_fits

    check_fits(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
