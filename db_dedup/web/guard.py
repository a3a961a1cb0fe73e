"""Checks every request before it is answered: who sends it, how large and slow it is; and logs it.

The log has the method, the route as the documentation writes it, the status and the client's name: neither
addresses with row keys in them, nor bodies, nor texts of errors, which may contain texts of rows.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from db_dedup.app.tokens import ANYBODY, LABEL, Client, Tokens
from db_dedup.config import ServerSettings
from db_dedup.config.server import LOOPBACK_NAMES, is_loopback
from db_dedup.errors import DedupError
from db_dedup.web.console.page_security import PAGE_HEADERS, check_form, client_of, is_page
from db_dedup.web.problems import RefusedError, problem, unreadable_tokens

logger = logging.getLogger(__name__)

_PUBLIC: Final = ("/v1/health/live", "/v1/health/ready", "/v1/openapi.json", "/v1/docs")
"""Paths that need no token: they show nothing of a row."""

_CHANGING: Final = ("POST", "PUT", "PATCH")
_WRITE_SECONDS: Final = 30
_API_HEADERS: Final = (
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    ),
)
_COMMON_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)

Observe = Callable[[str, str, int, float], None]
"""Called after each request with its method, route, status and seconds."""


class Guard:
    """Passes on the requests that may be answered, and answers the others itself."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, tokens: Tokens, observe: Observe) -> None:
        self._app, self._settings, self._tokens, self._observe = app, settings, tokens, observe
        names = {*settings.hosts, settings.host}
        if is_loopback(settings.host):
            names.update(LOOPBACK_NAMES)
        self._hosts = {_bracketed(name).casefold() for name in names}
        self._proxies = settings.proxy_networks
        self._origins = {origin.casefold() for origin in settings.origins}
        limit = settings.read_seconds + settings.answer_seconds + _WRITE_SECONDS
        self._seconds = float(limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        method = _method(scope)
        if method == "HEAD":  # monitors send it; the server leaves out the body of the answer
            scope = {**scope, "method": "GET"}
        answer = _Answer(send, PAGE_HEADERS if is_page(scope["path"]) else _API_HEADERS)
        try:
            async with asyncio.timeout(self._seconds):
                await self._answer(scope, receive, answer)
        except TimeoutError:
            logger.warning("a client took more than %d s to take its answer", self._seconds)
        finally:
            route = getattr(scope.get("route"), "path", "-")
            client = scope.get("state", {}).get("client")
            seconds = time.monotonic() - begun
            self._observe(method, route, answer.status, seconds)
            logger.info(
                "%s %s %d %.0f ms %s",
                method,
                route,
                answer.status,
                seconds * 1000,
                client.name if client else "-",
            )

    async def _answer(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        try:
            scope.setdefault("state", {})["client"] = self._admit(scope)
            limited = _Body(receive, self._settings.max_body, self._settings.read_seconds)
            await self._app(scope, limited, answer)
        except RefusedError as error:
            await self._refuse(error.name, error.detail, scope, receive, answer)
        except Exception as error:
            logger.error("a request failed: %s", _type_and_place(error))
            await self._refuse("failed", "The service failed.", scope, receive, answer)

    async def _refuse(
        self, name: str, detail: str, scope: Scope, receive: Receive, answer: "_Answer"
    ) -> None:
        if not answer.status:
            await problem(name, detail)(scope, receive, answer)

    def _admit(self, scope: Scope) -> Client | None:
        """Return who sends the request; None if its path is public.

        Raises:
            RefusedError: it may not be answered.
        """
        headers = Headers(scope=scope)
        settings = self._settings
        peer = scope["client"][0] if scope.get("client") else ""
        if self._proxies and not _is_within(peer, self._proxies):
            raise RefusedError("proxy-required", "Send the request to the proxy of this service.")
        host = headers.getlist("host")
        if len(host) != 1 or _without_port(host[0]) not in self._hosts:
            raise RefusedError("host-refused", "Add the name to hosts in [server] if it is right.")
        self._check_origin(headers.get("origin"), host[0])
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:  # PostgreSQL fails with it
            raise RefusedError("invalid", "No name and no key has a NUL character: leave it out.")
        _check_length(headers.get("content-length"), settings.max_body)
        if is_page(scope["path"]):
            return self._client_of_page(scope["method"], headers)
        if scope["method"] in _CHANGING:
            media_type = headers.get("content-type", "").partition(";")[0].strip().casefold()
            if media_type != "application/json":
                raise RefusedError("not-json", "Send Content-Type: application/json.")
        return None if scope["path"] in _PUBLIC else self._client_of_api(headers.getlist("authorization"))

    def _check_origin(self, origin: str | None, host: str) -> None:
        """Refuse what a page of another site sends; programs send no Origin."""
        if origin is None or origin.casefold() in self._origins:
            return
        try:
            parts = urlsplit(origin)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or parts.netloc.casefold() != host.casefold():
            raise RefusedError("origin-refused", "Add the site to origins in [server] if it is right.")

    def _client_of_page(self, method: str, headers: Headers) -> Client | None:
        """Return who reads a page, by the cookie; None if the page has to ask for a token."""
        if method in _CHANGING:
            check_form(headers)
        if not self._tokens.are_used:
            return self._allowed(ANYBODY)
        try:
            client = client_of(headers, self._tokens)
        except DedupError as error:
            raise unreadable_tokens(error) from None
        return None if client is None else self._allowed(client)

    def _allowed(self, client: Client) -> Client:
        """Return the client without the scope that a read-only service does not give."""
        scopes = client.scopes - {LABEL} if self._settings.read_only else client.scopes
        return Client(client.name, scopes)

    def _client_of_api(self, given: list[str]) -> Client:
        """Return who sends a request of the API, by its headers Authorization."""
        if not self._tokens.are_used:
            return self._allowed(ANYBODY)
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        try:
            client = self._tokens.client(token.strip()) if scheme.casefold() == "bearer" else None
        except DedupError as error:
            raise unreadable_tokens(error) from None
        if client is None:
            raise RefusedError("token-missing", "Send Authorization: Bearer and your token.")
        return self._allowed(client)


class _Answer:
    """Passes messages on, adds headers, and remembers the status."""

    def __init__(self, send: Send, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._send = send
        self._headers = (*_COMMON_HEADERS, *headers)
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._headers]
        await self._send(message)


class _Body:
    """Reads the body of a request, up to a size and a time."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive, self._most = receive, most
        self._until = asyncio.get_running_loop().time() + seconds
        self._read, self._is_complete = 0, False

    async def __call__(self) -> Message:
        if self._is_complete:
            return await self._receive()
        message = await self._in_time(self._receive())
        self._read += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._read > self._most:
            raise _too_large(self._most)
        return message

    async def _in_time(self, reading: Awaitable[Message]) -> Message:
        try:
            async with asyncio.timeout_at(self._until):
                return await reading
        except TimeoutError:
            raise RefusedError("too-slow", "Send the whole body sooner.") from None


def _check_length(length: str | None, most: int) -> None:
    # h11 refuses a length that is no number.
    if length is not None and int(length) > most:
        raise _too_large(most)


def _too_large(most: int) -> RefusedError:
    return RefusedError("too-large", f"A body has at most {most:,} bytes.")


def _is_within(peer: str, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    """Return whether an address is in one of the networks."""
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:  # a socket of both versions
        address = address.ipv4_mapped
    return any(address in network for network in networks)


def _without_port(host: str) -> str:
    """Return the name in a Host header."""
    name, colon, port = host.rpartition(":")
    is_port = bool(colon) and port.isdecimal()
    return (name if is_port else host).casefold()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _method(scope: Scope) -> str:
    """Return the method if it is a usual one: a client can send any word."""
    method = str(scope["method"])
    return method if method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH") else "-"


def _type_and_place(error: BaseException) -> str:
    """Return the type of an error and where it was raised, without its text."""
    place: Any = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" in {place.tb_frame.f_code.co_qualname}, line {place.tb_lineno}" if place is not None else ""
    return f"{type(error).__name__}{where}"
