"""Tell a chat what happens on a stagewise server: a receiver of webhooks that posts to Slack or Teams.

    python examples/server/chat.py --secrets chat.secret --chat https://hooks.slack.com/services/... --kind slack

It verifies the signature and the time of each event, answers a repeated one without posting it again, and answers 502
if the chat does not take it, so that the server sends it again. Only the standard library is needed.
"""

import argparse
import base64
import hashlib
import hmac
import json
import time
import urllib.request
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SIGNS = {"stop": "🔴", "alert": "🔴", "warning": "🟠", "jump": "🟠", "resume": "🟢"}
TOLERANCE = 300  # seconds between the clocks of the server and of this machine
MAX_BODY, MAX_REMEMBERED = 1 << 20, 10_000


def verify(secrets: list[bytes], headers: Any, body: bytes, now: float) -> bool:
    """Return whether one of the secrets signed the event, within the last minutes."""
    id_, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(now - int(timestamp)) > TOLERANCE:
        return False
    content = f"{id_}.{timestamp}.".encode() + body
    codes = [base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode() for secret in secrets]
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(f"v1,{code}".encode(), one.encode()) for code in codes for one in given)


def build_message(event: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return an event as Slack's incoming webhooks, or the workflows of Teams, take it.

    >>> build_message({"type": "stop", "data": {"experiment": "mail", "message": "killed by ada"}}, "slack")
    {'text': '🔴 mail: killed by ada'}
    """
    data = event["data"]
    text = f"{SIGNS.get(event['type'], '🔵')} {data['experiment'] or 'all experiments'}: {data['message']}"
    if kind == "slack":
        for letter, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # no link or mention in a note
            text = text.replace(letter, escaped)
        return {"text": text}
    card = {"type": "AdaptiveCard", "version": "1.4", "body": [{"type": "TextBlock", "text": text, "wrap": True}]}
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def build_server(port: int, secrets: Path, chat: str, kind: str) -> ThreadingHTTPServer:
    """Return a server that receives events on this machine and posts them to a chat."""
    seen: OrderedDict[str, None] = OrderedDict()

    def receive(headers: Any, body: bytes) -> int:
        keys = [base64.b64decode(line.removeprefix("whsec_")) for line in secrets.read_text().split()]
        if not verify(keys, headers, body, time.time()):
            return 401
        if (id_ := headers["webhook-id"]) in seen:
            return 204
        message = json.dumps(build_message(json.loads(body), kind)).encode()
        request = urllib.request.Request(chat, message, {"Content-Type": "application/json"})
        try:
            urllib.request.urlopen(request, timeout=5.0).close()
        except OSError as error:
            print(f"the chat did not take {id_}: {error}")
            return 502
        seen[id_] = None
        if len(seen) > MAX_REMEMBERED:
            seen.popitem(last=False)
        return 204

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self) -> None:
            size = int(self.headers.get("content-length", 0))
            status = 413 if size > MAX_BODY else receive(self.headers, self.rfile.read(size))
            self.send_response(status)
            self.end_headers()

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--secrets", type=Path, required=True)
    parser.add_argument("--chat", required=True, help="the address that the chat gave you")
    parser.add_argument("--kind", choices=("slack", "teams"), default="slack")
    given = parser.parse_args()
    build_server(given.port, given.secrets, given.chat, given.kind).serve_forever()
