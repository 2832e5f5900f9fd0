"""An upstream that answers with what it was sent, to see what a request looks like over there."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import msgspec

NOTE = "a member no SDK knows"


class MirrorPage(BaseHTTPRequestHandler):
    """Answers a chat request with a completion whose text is that request, as JSON."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size_bytes = int(self.headers["content-length"])
        asked = msgspec.json.decode(self.rfile.read(size_bytes))
        heads = {name.lower(): value for name, value in self.headers.items()}
        body = msgspec.json.encode(completion({"body": asked, "headers": heads}))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Stay silent."""


def completion(seen: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-mirror",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": seen["body"]["model"],
        "system_fingerprint": "fp_mirror",
        "service_tier": "default",
        "vendor_note": {"text": NOTE},
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": msgspec.json.encode(seen).decode()},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
    }


class Mirror:
    """A listening mirror; `with` starts and ends it."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), MirrorPage)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
