"""What can be set of a desk's HTTP side on the command line."""

from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import nearest, shown
from stagewise.service.messages import LARGEST_BATCH
from stagewise.service.web.app import Settings
from stagewise.service.web.page.origin import origin_of
from stagewise.service.web.rates import Rate


def settings_of(rate: float | None, personalizer: str | None, public_url: str | None, quiet: bool) -> Settings:
    """Return the settings; what was not asked for is as always."""
    return Settings(
        rate=Rate() if rate is None else rate_of(rate),
        personalizer=personalizer or "",
        log=not quiet,
        public="" if public_url is None else origin_of(public_url),
    )


def rate_of(per_second: float) -> Rate:
    """Return what a key may ask: a whole batch can come at once, however low the rate is."""
    if not 0.0 < per_second < float("inf"):
        raise InvalidProblem(f"--rate is {per_second:g}; it must be calls a second, above 0")
    return Rate(per_second, max(2.0 * per_second, LARGEST_BATCH))


def check_personalizer(name: str | None, experiments: set[str]) -> None:
    """Refuse an experiment that there will not be."""
    if name is not None and name not in experiments:
        raise InvalidProblem(
            f"--personalizer is {shown(name)}, which is no experiment of this desk{nearest(name, sorted(experiments))}"
        )
