"""The work of `stagewise certify`: certify a policy, or verify a certificate."""

from pathlib import Path
from typing import Any

from stagewise.cli.spec import read_spec
from stagewise.reports.certificate import Certificate
from stagewise.reports.certificate_text import format_headline
from stagewise.simulation.certify import certify
from stagewise.simulation.verify import verify_certificate
from stagewise.worlds.world_families import build_family


def run_certify(spec: Path, out: Path, **settings: Any) -> tuple[bool, str]:
    """Certify the policy of a file; rounds, seed and backend are those of its [simulation]."""
    content = read_spec(spec)
    policy, simulation = content.policy, content.simulation
    safe = getattr(getattr(policy, "safe_action", None), "arm", None) or 0
    family = build_family(content.certify.family, content.world, safe, simulation.seed, content.certify.spread)
    certificate = certify(
        policy,
        family,
        rounds=simulation.rounds,
        seed=simulation.seed,
        backend=simulation.backend,
        out=out,
        name=spec.stem.replace("_", " ").replace("-", " "),
        **settings,
    )
    headline = f"{certificate.verdict}: {format_headline(certificate.content)}"
    return certificate.holds, f"{headline}\nThe certificate: {out / 'certificate.html'}"


def run_verify(path: Path, fraction: float, seed: int | None, executor: str | None) -> tuple[bool, str]:
    """Repeat a fraction of a certificate's runs and compare them."""
    found = verify_certificate(path, replay_fraction=fraction, seed=seed, executor=executor)
    batches = "1 batch" if found.batches == 1 else f"{found.batches} batches"
    repeated = f"{found.runs:,} runs in {batches} were repeated, {found.equal} of them bit for bit"
    if found.stands:
        content = Certificate.load(path).content
        names = ", ".join(found.unconfirmed)
        unconfirmed = f" Consistent, but compared only with --fraction 1: {names}." if names else ""
        headline = f"{content['verdict']}, {format_headline(content)}"
        return True, f"{path} is confirmed: {repeated}.{unconfirmed} Its verdict: {headline}"
    return False, f"{path} is not confirmed: {'; '.join(found.faults)}. {repeated}."
