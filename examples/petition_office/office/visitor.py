"""What each request brings: the language, the form and its secret value."""

import hmac
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from .words import LANGUAGES, Words

LANGUAGE_COOKIE, FORM_COOKIE = "office_language", "office_form"
LARGEST_FORM = 500_000
YEAR = 365 * 24 * 3600


class RefusedError(Exception):
    """A request that is answered with a page that says why; `word` is one of words.py."""

    def __init__(self, word: str, status: int) -> None:
        super().__init__(word)
        self.word, self.status = word, status


class Visitor:
    """One request."""

    def __init__(self, request: Request) -> None:
        self.request = request
        cookies, asked = request.cookies, request.query_params.get("lang")
        self.chosen = asked if asked in LANGUAGES else None
        kept = cookies.get(LANGUAGE_COOKIE)
        self.words = Words(self.chosen or (kept if kept in LANGUAGES else LANGUAGES[0]))
        self.form_value = cookies.get(FORM_COOKIE) or secrets.token_urlsafe(32)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        found = templates().get_template(template)
        return self._with_cookies(HTMLResponse(found.render(t=self.words, visitor=self, **values), status))

    def go(self, address: str) -> Response:
        """Send the browser to a page, so that a reload does not send the form again."""
        return self._with_cookies(RedirectResponse(address, 303))

    def query(self, **changes: str) -> str:
        """The query of this page with other parameters, as a relative address."""
        return "?" + urlencode({**self.request.query_params, **changes})

    def _with_cookies(self, response: Response) -> Response:
        if self.chosen:
            response.set_cookie(LANGUAGE_COOKIE, self.chosen, max_age=YEAR, samesite="lax", httponly=True)
        if FORM_COOKIE not in self.request.cookies:
            response.set_cookie(FORM_COOKIE, self.form_value, samesite="strict", httponly=True)
        return response


async def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of a form of ours; another site does not know the value of the cookie."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_FORM:
            raise RefusedError("error.large", 413)
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50))
    except ValueError:
        raise RefusedError("error.form", 400) from None
    given, kept = fields.get("form_value", ""), request.cookies.get(FORM_COOKIE, "")
    if not kept or not hmac.compare_digest(given.encode(), kept.encode()):
        raise RefusedError("error.form", 403)
    # No database stores NUL in a text, and a browser sends CR LF for each new line.
    return {name: value.replace("\0", "").replace("\r\n", "\n").strip() for name, value in fields.items()}


Reader = Annotated[Visitor, Depends(Visitor)]
Form = Annotated[Mapping[str, str], Depends(form_of)]


@lru_cache
def templates() -> Environment:
    """The pages; whatever a petition contains is escaped."""
    loader = PackageLoader("office", "pages")
    return Environment(
        autoescape=True, loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
