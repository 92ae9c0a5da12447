"""A store copied to another address, and the copy verified."""

from stagewise.problem.errors import InvalidFile
from stagewise.service.audit.verifying import Verified, verify
from stagewise.service.store.copying import copy
from stagewise.service.store.opened import open_store
from stagewise.service.store.store import StoreDown


def copied(address: str, to: str) -> list[Verified]:
    """Copy a store; every log of the copy is verified, and ends as the original does."""
    if address == to:
        raise InvalidFile(f"{address} cannot be copied to itself")
    open_store(address, read_only=True).close()  # there must be one: to be written, it would be made
    source = open_store(address)
    try:
        target = open_store(to)
        try:
            copy(source, target)
            found = list(verify(target))
            for one in found:
                if one.fault is not None:
                    raise StoreDown(f"the copy of {one.experiment!r} is not whole: {one.fault}")
                if target.head(one.experiment) != source.head(one.experiment):
                    raise StoreDown(f"the copy of {one.experiment!r} ends elsewhere than the original")
            return found
        finally:
            target.close()
    finally:
        source.close()
