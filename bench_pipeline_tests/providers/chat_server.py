"""A real chat-completions server on the loopback interface that misbehaves on request.

A handler receives the request's document and returns a ``Response``; what it cannot express (hanging, dripping,
dropping the connection) it does to the connection itself. Every request is kept, with its headers.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Response:
    """What to send; ``raw`` instead of all the rest goes out as it is."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None


Handler = Callable[[dict[str, Any]], Response | None]


def document(content: object = "ready", **more: object) -> dict[str, object]:
    """A chat completion with one choice."""
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    return {"choices": [{"index": 0, "message": message}], "usage": usage, **more}


def answer(content: object = "ready", **more: object) -> Response:
    """That, as a response."""
    return Response(json.dumps(document(content, **more)).encode())


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    document: dict[str, Any]
    connection: int


class ChatServer(ThreadingHTTPServer):
    """Answers every POST by ``handler``; ``released`` ends those that hang."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, handler: Handler) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.handler = handler
        self.asked: list[Asked] = []
        self.released = threading.Event()
        self.lock = threading.Lock()
        self.in_flight = 0
        self.most_in_flight = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1/chat/completions"

    def hang(self, _document: dict[str, Any]) -> None:
        """Never answer."""
        self.released.wait(30)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are what these tests are about."""


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.asked.append(Asked(self.path, dict(self.headers.items()), body, self.client_address[1]))
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            response = server.handler(body)
        finally:
            with server.lock:
                server.in_flight -= 1
        if response is None:
            self.close_connection = True
            return
        with suppress(OSError):
            self._send(response)

    def _send(self, response: Response) -> None:
        if response.raw is not None:
            self.wfile.write(response.raw)
            self.close_connection = True
            return
        self.send_response(response.status)
        length = {"Content-Length": str(len(response.body)), "Content-Type": "application/json"}
        for name, value in {**length, **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def serving(handler: Handler) -> Iterator[ChatServer]:
    """A server that runs while the block does."""
    server = ChatServer(handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def dripping(chunks: list[bytes], seconds: float) -> Iterator[str]:
    """A server that sends its pieces ``seconds`` apart; yields its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                for chunk in chunks:
                    connection.sendall(chunk)
                    if done.wait(seconds):
                        return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions"
    finally:
        done.set()
        listener.close()
        thread.join(5)
