"""The example that tells a chat what a server's webhooks say, between a real server and a chat on this machine."""

import runpy
import threading
from pathlib import Path

import pytest
from tests.server.receivers import NEXT_SECRET, receiving, write_webhooks
from tests.server.server_helpers import NAME, played, serve_problem, soon

from stagewise.server.webhooks import sender
from stagewise.server.webhooks.endpoints import load_endpoints

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "server" / "chat.py"), run_name="chat")


@pytest.mark.parametrize("kind", ["slack", "teams"])
@played
async def test_a_chat_gets_each_event_once(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "DELAYS", (0.05,))
    with receiving(500) as chat:  # the first post fails
        http = EXAMPLE["build_server"](0, tmp_path / "chat.secret", chat.url, kind)
        monkeypatch.setattr(http.RequestHandlerClass, "log_message", lambda *_: None)
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        path = write_webhooks(tmp_path, f"http://127.0.0.1:{http.server_port}/", 'events = ["stop"]')
        async with serve_problem(tmp_path, webhooks=load_endpoints(path)) as server:
            await server.kill(NAME, "ada", "<!channel> complaints")
            await soon(lambda: server.counters.webhooks["chat", sender.DELIVERED])
        http.shutdown()
        thread.join()
        http.server_close()
    first, second = (call.event for call in chat.calls)
    assert first == second
    text = first["text"] if kind == "slack" else first["attachments"][0]["content"]["body"][0]["text"]
    assert NAME in text
    assert ("<" in text) == (kind == "teams")


def test_a_forged_or_old_event_is_refused() -> None:
    verify, secret = EXAMPLE["verify"], bytes(32)
    from stagewise.server.webhooks.endpoints import sign

    headers = {"webhook-id": "a", "webhook-timestamp": "1000", "webhook-signature": sign([secret], "a", 1000, b"{}")}
    assert verify([bytes(31), secret], headers, b"{}", 1010.0)
    assert not verify([secret], headers, b"{ }", 1010.0)
    assert not verify([secret], headers, b"{}", 2000.0)
    assert not verify([secret], {**headers, "webhook-id": "b"}, b"{}", 1010.0)
    assert not verify([NEXT_SECRET.encode()], headers, b"{}", 1010.0)
    assert not verify([secret], {}, b"{}", 1010.0)
