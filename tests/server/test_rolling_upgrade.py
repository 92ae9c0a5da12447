"""Servers of two versions side by side on one PostgreSQL: a rolling upgrade loses nothing and answers everything.

The earlier version is the code of a commit whose stores can be read, and are migrated.
"""

import io
import subprocess
import tarfile
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest
from tests.lacking import lacking
from tests.server.test_serving_cli import PROBLEM, served

from stagewise.server.audit.log_reader import FindingCode
from stagewise.server.audit.verify import verify_store
from stagewise.server.client import Client
from stagewise.server.store.migrate import FOLDER, open_store, read_migrations

ROOT = Path(__file__).parents[2]
EARLIER = "7ed2a31d"
NAME = "messages"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the earlier version."""
    folder = tmp_path_factory.mktemp("earlier")
    done = subprocess.run(["git", "archive", EARLIER, "src"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        lacking("the repository has no history, so there is no earlier version", excused=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def test_two_servers_are_upgraded_one_after_the_other(earlier: Path, postgres: str, tmp_path: Path) -> None:
    folders, made, told = [tmp_path / "old", tmp_path / "new"], dict[str, str](), 0
    for folder in folders:
        folder.mkdir()
        (folder / "messages.toml").write_text(PROBLEM)
    words = ("messages.toml", "--store", postgres)

    def play(address: str, name: str) -> None:
        nonlocal told
        with Client(address, writer, "messages", safe="nothing", timeout=30.0) as client:
            for i in range(15):
                decision = client.decide({"age": 20.0 + i}, decision_id=f"{name}-{i}")
                assert decision.logged
                made[decision.decision_id] = decision.action
                told += len(client.learn(decision.decision_id, click=bool(i % 3)).accepted)

    with ExitStack() as new_server:
        with served(folders[0], *words, "--keys", "keys.txt", source=earlier) as (old, _):
            writer = (folders[0] / "keys.txt").read_text().split()[1]
            play(old, "a")
            new, _ = new_server.enter_context(served(folders[1], *words))  # migrates the tables; the other goes on
            with closing(open_store(postgres, read_only=True)) as store:
                ((version,),) = store._all("SELECT max(number) FROM migrations")
                assert version == len(read_migrations(FOLDER)) > 3
            play(new, "b")
            play(old, "c")
            with Client(new, writer, "messages", safe="nothing", timeout=30.0) as client:
                again = client.decide({"age": 20.0}, decision_id="c-0")  # a retry on the other version
                assert (again.action, again.logged) == (made["c-0"], True)
        play(new, "d")  # it learns now
    with closing(open_store(postgres)) as store:
        while store.seal():
            pass
        assert {fault.code for fault in verify_store(store).faults} <= {FindingCode.SNAPSHOT_DIFFERS}
        logged = {row.key: msgspec.json.decode(row.body)["action"] for row in store.events_of_kind(NAME, "decision")}
        assert logged == made
        assert told == len(made) == 60
        assert sum(row.kind == "outcome" for row in store.events(NAME)) == 60
