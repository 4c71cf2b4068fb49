"""HTTP over one kept connection per thread, behind httpx's transport interface.

What belongs here: connections, and a limit in time for a whole call, however slowly its bytes come. What does not:
what a response means (``chat``). httpx's own pool costs several times the processor time of the call itself when
dozens of them overlap; nothing here follows redirects, reads proxies or credentials of the environment, keeps
cookies or sends anything twice. See https://www.python-httpx.org/advanced/transports/.
"""

import contextlib
import http.client
import io
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import httpx

from bench_pipeline.providers.endpoint import Endpoint

# The name of the request extension that says, on the monotonic clock, when a call has to be over.
ENDS_AT = "ends_at"
_CHUNK = 1 << 16


class Connections(httpx.BaseTransport):
    """Connections to one endpoint; threads may share it, each has a connection of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._tls = ssl.create_default_context() if endpoint.secure else None
        self._own = threading.local()
        self._lock = threading.Lock()
        self._opened: list[_Connection] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and read the head of its response.

        Raises:
            TimeoutError: the call had to be over.
            OSError, http.client.HTTPException: the connection failed, or what came is not HTTP.
        """
        connection = self._connection()
        connection.ends_at = request.extensions[ENDS_AT]
        if connection.stale():
            connection.close()
        try:
            connection.putrequest(
                request.method,
                request.url.raw_path.decode("ascii"),
                skip_host=True,
                skip_accept_encoding=True,
            )
            for name, value in request.headers.raw:
                connection.putheader(name, value)
            connection.endheaders(request.read())
            response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        return httpx.Response(
            response.status,
            headers=[
                (name.encode("latin-1"), value.encode("latin-1")) for name, value in response.getheaders()
            ],
            stream=_Body(connection, response),
            request=request,
        )

    def interrupt(self) -> None:
        """End the connections under the calls that other threads have in flight."""
        with self._lock:
            for connection in self._opened:
                connection.interrupt()

    def close(self) -> None:
        """Close the connections of all threads; none may be in use."""
        with self._lock:
            for connection in self._opened:
                connection.close()

    def _connection(self) -> "_Connection":
        found: _Connection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = _Connection(self._endpoint, self._tls)
            with self._lock:
                self._opened.append(found)
        return found


class _Body(httpx.SyncByteStream):
    """A response's bytes as they come; a body that was not read to its end ends the connection."""

    def __init__(self, connection: "_Connection", response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self._whole = False

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._response.read1(_CHUNK):
            yield chunk
        if self._response.length:
            raise http.client.IncompleteRead(b"", self._response.length)
        self._whole = True

    def close(self) -> None:
        self._response.close()
        if not self._whole:
            self._connection.close()


class _Connection(http.client.HTTPConnection):
    """A connection whose every wait ends when the call has to be over."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        super().__init__(endpoint.host, endpoint.port)
        self._tls = tls
        self._unsent = bytearray()
        self.ends_at = 0.0

    def left(self) -> float:
        """The seconds that the call still has."""
        seconds = self.ends_at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time for the call is over")
        return seconds

    def connect(self) -> None:
        """Connect, and wrap the socket so that each of its waits is bounded."""
        plain = socket.create_connection((self.host, self.port), self.left())
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            plain.settimeout(self.left())
            plain = self._tls.wrap_socket(plain, server_hostname=self.host)
        self.sock = _BoundedSocket(plain, self)

    def send(self, data: bytes) -> None:  # type: ignore[override]
        """Keep the head until the body follows: one write, and one packet of most requests."""
        self._unsent += data

    def getresponse(self) -> http.client.HTTPResponse:
        """Send the request and read the head of its response."""
        if self.sock is None:
            self.connect()
        request, self._unsent = self._unsent, bytearray()
        self.sock.sendall(request)
        return super().getresponse()

    def close(self) -> None:
        """Close the connection; what was not sent is forgotten."""
        self._unsent = bytearray()
        super().close()

    def stale(self) -> bool:
        """Whether the server has closed a kept connection, or sent what nobody asked for."""
        if self.sock is None:
            return False
        waiting = select.poll()
        waiting.register(self.sock, select.POLLIN)
        return bool(waiting.poll(0))

    def interrupt(self) -> None:
        """Make what another thread waits for on this connection fail; closing it is left to that thread."""
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


class _BoundedSocket:
    """What ``http.client`` needs of a socket, with the time that is left before each wait."""

    def __init__(self, plain: socket.socket, connection: _Connection) -> None:
        self._plain = plain
        self._connection = connection
        self._reading: _Reading | None = None

    def fileno(self) -> int:
        return self._plain.fileno()

    def sendall(self, data: bytes | bytearray) -> None:
        self._plain.settimeout(self._connection.left())
        self._plain.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        self._reading = _Reading(self._plain, self._connection)
        return io.BufferedReader(self._reading, _CHUNK)

    def shutdown(self, how: int) -> None:
        self._plain.shutdown(how)

    def close(self) -> None:
        # ``http.client`` lets go of a socket that will not be used again while its response is being read.
        if self._reading is None or self._reading.closed:
            self._plain.close()
        else:
            self._reading.is_last = True


class _Reading(io.RawIOBase):
    def __init__(self, plain: socket.socket, connection: _Connection) -> None:
        self._plain = plain
        self._connection = connection
        self.is_last = False

    def close(self) -> None:
        super().close()
        if self.is_last:
            self._plain.close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        self._plain.settimeout(self._connection.left())
        return self._plain.recv_into(buffer)  # type: ignore[arg-type]
