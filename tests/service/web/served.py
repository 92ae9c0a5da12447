"""A desk in a process of its own: `python -m tests.service.web.served FOLDER` prints its address and a writer's key."""

import sys
from pathlib import Path

from tests.service.web.real import Real

from stagewise.service.web.serving import serve


def main() -> None:
    """Serve until told to stop."""
    there = Real(Path(sys.argv[1]))

    def started(address: str) -> None:
        print(address, there.writer.key, flush=True)

    serve(
        there.desk, "127.0.0.1", 0, keys=there.keys, settings=there.app.settings, prepare=there.prepare, started=started
    )
    print("stopped well", flush=True)


if __name__ == "__main__":
    main()
