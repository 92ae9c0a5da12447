"""Copy a store to another address and verify the copy."""

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.server.audit.verify_log import VerificationResult, verify_store
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.copy_store import copy_store
from stagewise.server.store.factory import open_store


def copy_and_verify(address: str, to: str) -> list[VerificationResult]:
    """Copy a store; verify every log of the copy and compare its end with the original."""
    if address == to:
        raise InvalidFile(ErrorCode.CONFLICTING_OPTIONS, "{address} cannot be copied to itself", address=address)
    open_store(address, read_only=True).close()  # fails if there is no store; opening it for writing would create one
    source = open_store(address)
    try:
        target = open_store(to)
        try:
            copy_store(source, target)
            results = list(verify_store(target))
            for one in results:
                if one.fault is not None:
                    raise StoreUnavailable(
                        ErrorCode.STORE_CORRUPT,
                        "the copy of {experiment!r} is incomplete: {fault}",
                        experiment=one.experiment,
                        fault=one.fault,
                    )
                if target.head(one.experiment) != source.head(one.experiment):
                    raise StoreUnavailable(
                        ErrorCode.STORE_CORRUPT,
                        "the copy of {experiment!r} and the original end at different rows",
                        experiment=one.experiment,
                    )
            return results
        finally:
            target.close()
    finally:
        source.close()
