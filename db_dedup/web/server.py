"""Run the service on uvicorn until an event stops it; its socket is opened here."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from db_dedup.app import Database
from db_dedup.app.tokens import Tokens
from db_dedup.config import ServerSettings, Settings
from db_dedup.errors import ConfigError
from db_dedup.flow.threads import starting_threads
from db_dedup.translation import Phrase
from db_dedup.web.certificates import require_certificate
from db_dedup.web.context import Context
from db_dedup.web.problems import problem
from db_dedup.web.service import make_service

logger = logging.getLogger(__name__)

_MOST_CONNECTIONS: Final = 500
_KEEP_ALIVE_SECONDS: Final = 15
_PREPARING_SECONDS: Final = 60
"""How long a service that stops waits for the thread that prepares it.

If the interpreter ended while LLVM compiles in that thread, LLVM's next call into Python would be a
segmentation fault.
"""
_BACKLOG: Final = 128
_MOST_HEADER_BYTES: Final = 64 * 1024


def serve(
    database: Database,
    settings: Settings | None,
    server: ServerSettings,
    stop: threading.Event,
    tell: Callable[[str], None],
) -> None:
    """Serve until the event is set; requests that run are finished first.

    Args:
        database: of the rows and of our tables.
        settings: the tables to serve; None for all that are watched.
        server: where to listen, and limits.
        stop: ends the service.
        tell: is called with the address of the service when it accepts requests.

    Raises:
        ConfigError: the service would not be safe, its certificate cannot be used, or the port cannot be
            opened.
    """
    tokens = Tokens(Path(server.tokens) if server.tokens else None)
    server.require_safe(has_tokens=tokens.are_used)
    require_certificate(server)
    opened = _listen(server)
    app, context = make_service(database, settings, server, tokens)
    preparing = threading.Thread(target=_prepare, args=[context], name="db-dedup-prepare", daemon=True)

    def begin() -> None:
        tell(_address(server, opened))
        with starting_threads():
            preparing.start()

    try:
        _Server(_configured(app, server), stop, begin).run(sockets=[opened])
    finally:
        opened.close()
        context.threads.close()
        if preparing.ident is not None:
            preparing.join(_PREPARING_SECONDS)


def _address(server: ServerSettings, opened: socket.socket) -> str:
    host, port = opened.getsockname()[:2]
    scheme = "https" if server.certificate else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _prepare(context: Context) -> None:
    """Load and compile what requests need. A table with a fault is reported; it may be repaired later."""
    try:
        for name, fault in context.tables.make_ready().items():
            logger.warning("%s cannot be checked: %s", name or Phrase("the database"), fault)
    except Exception as error:  # its text may be a row's
        logger.error("not prepared: %s", type(error).__name__)
    context.readiness.is_prepared = True


def _listen(server: ServerSettings) -> socket.socket:
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
            opened.listen(_BACKLOG)
        except OSError:
            opened.close()
            raise
    except OSError as error:
        raise ConfigError(
            "cannot listen on {host}, port {port}: {reason}",
            host=server.host,
            port=server.port,
            reason=error.strerror or error,
        ) from None
    return opened


def _configured(app: Any, server: ServerSettings) -> uvicorn.Config:
    class Protocol(_TimedProtocol):
        seconds = float(server.read_seconds)

    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,  # it would show row keys
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        # Until every request that runs has been read and answered.
        timeout_graceful_shutdown=server.read_seconds + server.answer_seconds,
        h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
        ssl_certfile=server.certificate,
        ssl_keyfile=server.certificate_key,
    )
    config.load()
    return config


class _Server(uvicorn.Server):
    """Stops at an event instead of a signal: the command line handles those of all its commands."""

    def __init__(self, config: uvicorn.Config, stop: threading.Event, begin: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop, self._begin = stop, begin

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept requests, and say so."""
        await super().startup(sockets)
        self._begin()

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop; uvicorn asks ten times a second."""
        if self._stop.is_set():
            self.should_exit = True
        return await super().on_tick(counter)


async def _refuse_one_more(scope: Scope, receive: Receive, send: Send) -> None:
    logger.warning("a request was refused: there are %d connections", _MOST_CONNECTIONS)
    await problem("busy", "Too many clients are connected. Try again in some seconds.")(scope, receive, send)


class _TimedProtocol(H11Protocol):
    """Closes a connection whose next request does not begin, or whose headers do not end, in time.

    uvicorn has such a limit only for the time between two requests. It refuses what is not HTTP with a plain
    text; here the answer is a problem, as for all other refusals.
    """

    seconds = 10.0
    _service: ASGIApp
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        self.access_log = False  # also if other code of the process has switched it on
        super().connection_made(transport)
        self._service = self.app
        self._update_timer()

    def data_received(self, data: bytes) -> None:
        """Read on, and stop the timer when the headers of a request are complete."""
        self.app = _refuse_one_more if len(self.connections) >= _MOST_CONNECTIONS else self._service
        super().data_received(data)
        self._update_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        del msg
        answer = problem("bad-request", "The request is not valid HTTP.")
        headers = [*answer.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=answer.status_code, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _update_timer(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
