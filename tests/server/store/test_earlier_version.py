"""A store that the code of an earlier commit made: it is migrated when it is opened, and goes on.

Each file is `tests.server.audited.lived` with PART = 6: version_3.db.xz at 7ed2a31d, unreadable.db.xz at e1ee58c3. A
change that makes stores unreadable raises READABLE_FROM, and takes both from the commits before it.
"""

import lzma
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
from tests.problem.refusal import refused
from tests.server.server_helpers import NAME, learned, played, user

from stagewise.problem.errors import ErrorCode
from stagewise.server.audit.log_reader import FindingCode
from stagewise.server.audit.verify import verify_store
from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import DecisionRequest
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.migrate import FOLDER, READABLE_FROM, open_store, read_migrations

HERE = Path(__file__).parent


@played
async def test_a_store_of_the_last_format_is_migrated_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    path.write_bytes(lzma.decompress((HERE / "version_3.db.xz").read_bytes()))
    with refused(StoreUnavailable, ErrorCode.FILE_OF_OTHER_VERSION):
        open_store(str(path), read_only=True)
    with closing(open_store(str(path))) as store:
        ((version,),) = store._all("SELECT max(number) FROM migrations")
        assert version == len(read_migrations(FOLDER)) > 3
        first = store.find(NAME, "decision", "live-0")
        count = store.head(NAME).decision_count
    server = DecisionServer(open_store(str(path)))
    await server.start()
    await learned(server)  # also if its snapshots are not of this release
    assert first is not None
    context = msgspec.json.decode(first.body)["request"]["context"]
    retry = await server.decide(NAME, DecisionRequest(context, decision_id="live-0"))
    assert retry.receipt == first.receipt
    again = await server.decide(NAME, user("after"))
    assert again.logged
    assert server.store.head(NAME).decision_count == count + 1
    await server.stop()
    with closing(open_store(str(path), read_only=True)) as store:
        assert {fault.code for fault in verify_store(store).faults} <= {FindingCode.SNAPSHOT_DIFFERS}


def test_a_store_whose_rows_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.db"
    content = lzma.decompress((HERE / "unreadable.db.xz").read_bytes())
    path.write_bytes(content)
    with refused(StoreUnavailable, ErrorCode.FILE_OF_OTHER_VERSION, READABLE_FROM):
        open_store(str(path))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT max(number) FROM migrations").fetchone() == (1,)
