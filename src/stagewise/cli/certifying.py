"""What `stagewise certify` does, by what it was given: a file, or a certificate to verify."""

from pathlib import Path
from typing import Any

from stagewise.cli.spec import read
from stagewise.reports.certificate import Certificate
from stagewise.reports.certificate_words import headline
from stagewise.simulation.certify import certify
from stagewise.simulation.verify import verify
from stagewise.worlds.family import family_of


def certified(spec: Path, out: Path, **settings: Any) -> tuple[bool, str]:
    """Certify the one policy of a file; its [simulation] tells rounds, seed and backend."""
    asked = read(spec)
    policy, plan = asked.policy, asked.simulation
    safe = getattr(getattr(policy, "safe_action", None), "arm", None) or 0
    family = family_of(asked.certify.family, asked.world, safe, plan.seed, asked.certify.spread)
    told: dict[str, Any] = {"rounds": plan.rounds, "seed": plan.seed, "backend": plan.backend, "out": out}
    told["name"] = spec.stem.replace("_", " ").replace("-", " ")
    certificate = certify(policy, family, **told, **settings)
    words = f"{certificate.verdict}: {headline(certificate.content)}\nThe certificate: {out / 'certificate.html'}"
    return certificate.holds, words


def checked(path: Path, part: float, seed: int | None, executor: str | None) -> tuple[bool, str]:
    """Play part of a certificate's runs again."""
    found = verify(path, part=part, seed=seed, executor=executor)
    batches = "1 batch" if found.batches == 1 else f"{found.batches} batches"
    again = f"{found.runs:,} runs in {batches} were played again, {found.equal} of them to the same bit"
    if found.stands:
        content = Certificate.load(path).content
        left = ", ".join(found.unconfirmed)
        rest = f" Possible, but compared only with --part 1: {left}." if left else ""
        return True, f"{path} stands: {again}.{rest} It says: {content['verdict']}, {headline(content)}"
    return False, f"{path} does not stand: {'; '.join(found.faults)}. {again}."
