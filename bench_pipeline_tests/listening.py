"""A local web server that messages are sent to: it takes them, refuses them, hangs, or sends them elsewhere."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class Listener:
    """Messages that were taken, by the path that they came to; ``down``: answer 500 to everything."""

    def __init__(self, port: int, ended: Event) -> None:
        self.port, self.ended, self.down = port, ended, False
        self.asked: list[str] = []
        self.taken: list[dict[str, Any]] = []

    def url(self, path: str) -> str:
        """The URL of a path as Apprise reads it, with a password; patience is short where it would be in vain."""
        patience = 0.5 if path == "hang" else 100
        return f"json://user:hush-hush-secret@127.0.0.1:{self.port}/{path}?rto={patience}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["content-length"] or 0))
        path = handler.path.partition("?")[0]
        self.asked.append(path)
        if path == "/hang":
            self.ended.wait()
            return
        status = 500 if self.down or path == "/broken" else 302 if path == "/away" else 200
        if status == 200:
            self.taken.append(json.loads(body))
        handler.send_response(status)
        if status == 302:
            handler.send_header("location", f"http://127.0.0.1:{self.port}/elsewhere")
        handler.send_header("content-length", "0")
        handler.end_headers()


@contextmanager
def listening() -> Iterator[Listener]:
    """A server for as long as the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            listener.answer(self)

        def do_GET(self) -> None:
            listener.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        listener = Listener(server.server_address[1], Event())
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield listener
        finally:
            listener.ended.set()
            server.shutdown()
            thread.join()
