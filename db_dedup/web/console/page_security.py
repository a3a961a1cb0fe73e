"""How the pages are protected: the check of forms, the token cookie, and what a page may load.

The token of a reader is in a cookie. Browsers also send it with requests that a page of another site has
caused. So a form must come from a page of this service: the browser says so in Origin or Sec-Fetch-Site, and
the form has a hidden value that other sites cannot read.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from db_dedup.app.tokens import Client, Tokens
from db_dedup.web.problems import RefusedError

PREFIX: Final = "/console"
TOKEN_COOKIE: Final = "db_dedup_token"  # noqa: S105 - a name
LANGUAGE_COOKIE: Final = "db_dedup_language"
_FORM: Final = "application/x-www-form-urlencoded"

_POLICY: Final = (
    b"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
PAGE_HEADERS: Final = (
    # Without any referrer, browsers send "Origin: null" with a form.
    (b"referrer-policy", b"same-origin"),
    (b"content-security-policy", _POLICY),
)
"""Headers of pages: a page loads nothing from other sites, and runs no script that is in its text."""


def is_page(path: str) -> bool:
    """Return whether a path is for people."""
    return path in ("/", PREFIX) or path.startswith(f"{PREFIX}/")


def check_form(headers: Headers) -> None:
    """Check that a form comes from a page of this service.

    Raises:
        RefusedError: it may come from elsewhere, or is no form.
    """
    # The guard has compared Origin with Host.
    if headers.get("origin") is None and headers.get("sec-fetch-site") != "same-origin":
        raise RefusedError("origin-refused", "Send the form from a page of this service.")
    if headers.get("content-type", "").partition(";")[0].strip().casefold() != _FORM:
        raise RefusedError("not-a-form", "Send the form as a browser does.")


def cookies_of(headers: Headers) -> Mapping[str, str]:
    """Return the cookies of a request, also beside those of other programs, which may have any text."""
    return cookie_parser("; ".join(headers.getlist("cookie"))[:8_000])


def client_of(headers: Headers, tokens: Tokens) -> Client | None:
    """Return the client whose token is in the cookie; None if there is no valid token."""
    token = cookies_of(headers).get(TOKEN_COOKIE)
    return None if token is None else tokens.client(token)


def form_value(secret: bytes, headers: Headers) -> str:
    """Return the hidden value of the forms of a reader: it depends on the reader's token."""
    token = cookies_of(headers).get(TOKEN_COOKIE, "")
    return hmac.new(secret, token.encode(), sha256).hexdigest()
