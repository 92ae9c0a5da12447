"""A desk in a process of its own: `python -m tests.server.web.served FOLDER` prints its address and a writer's key."""

import sys
from pathlib import Path

from tests.server.web.real import Real

from stagewise.server.web.http_server import serve


def main() -> None:
    """Serve until told to stop."""
    there = Real(Path(sys.argv[1]))

    def on_start(address: str) -> None:
        print(address, there.writer.key, flush=True)

    serve(
        there.desk,
        "127.0.0.1",
        0,
        keys=there.keys,
        settings=there.app.settings,
        prepare=there.prepare,
        on_start=on_start,
    )
    print("stopped well", flush=True)


if __name__ == "__main__":
    main()
