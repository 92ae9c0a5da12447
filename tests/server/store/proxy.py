"""A road to a server that can be slow or cut: at once, or when the answer to a commit comes along."""

import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """Passes bytes on, from a port of its own to that of a server.

    Attributes:
        delay: Seconds that each piece of the server's answers takes.
        commit_delay: Seconds that a commit takes on its way to the server, which holds its locks meanwhile.
        cut_after: The server's word that this is done is lost, with the connection; None: nothing is.
        cuts: How often that happened.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.target = ("127.0.0.1", parts.port or 5432)
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        self.address = urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}"))
        self.delay = self.commit_delay = 0.0
        self.cut_after: bytes | None = None
        self.cuts = 0
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Cut everything, for good."""
        shut(self.listener)
        self.cut()

    def cut(self) -> None:
        """Cut all connections; new ones are passed on."""
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            shut(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target)
            except OSError:  # it is down
                shut(client)
                continue
            self._sockets += [client, server]
            threading.Thread(target=self._to_server, args=(client, server), daemon=True).start()
            threading.Thread(target=self._to_client, args=(client, server), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self.commit_delay and b"COMMIT" in data:
                    time.sleep(self.commit_delay)
                server.sendall(data)
        shut(server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if self.cut_after is not None and self.cut_after + b"\0" in data:
                    self.cuts += 1
                    break
                if self.delay:
                    time.sleep(self.delay)
                client.sendall(data)
        shut(client)


def shut(each: socket.socket) -> None:
    """Close a socket that others may be waiting at."""
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
