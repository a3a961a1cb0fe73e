"""What all pages share: who reads, in which language, the templates, and errors as pages."""

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from db_dedup import __version__
from db_dedup.app.tokens import LABEL, READ, Tokens
from db_dedup.errors import DedupError
from db_dedup.present.visible import visible
from db_dedup.translation import ENGLISH, Phrase, lookup
from db_dedup.web.console.page_security import LANGUAGE_COOKIE, PREFIX, cookies_of, form_value
from db_dedup.web.console.words import Words, choose_language
from db_dedup.web.context import Context, context_of
from db_dedup.web.problems import (
    RefusedError,
    problem,
    problem_of_error,
    problem_of_status,
    unreadable_tokens,
)

_MOST_FIELDS: Final = 50


@dataclass(frozen=True)
class Console:
    """What the pages of a service work with.

    Attributes:
        tokens: of the clients.
        secret: of this process; the hidden value of forms is made of it if there are no tokens.
        is_encrypted: whether readers reach the service by TLS.
    """

    tokens: Tokens
    secret: bytes
    is_encrypted: bool


class LoginNeededError(Exception):
    """A page that needs a token was asked for without one."""


class Visitor:
    """One request of a reader."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.context: Context = context_of(request)
        self.console: Console = request.app.state.console
        cookies = cookies_of(request.headers)
        accepted = request.headers.get("accept-language", "")
        self.words = Words(choose_language(cookies.get(LANGUAGE_COOKIE), accepted))
        self.client = request.state.client

    @property
    def may_label(self) -> bool:
        """Whether the reader may confirm and reject pairs."""
        return self.client is not None and LABEL in self.client.scopes

    @property
    def form_value(self) -> str:
        """The hidden value of the reader's forms; other instances with the same tokens accept it."""
        try:
            secret = self.console.tokens.shared_secret() or self.console.secret
        except DedupError as error:
            raise unreadable_tokens(error) from None
        return form_value(secret, self.request.headers)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        return HTMLResponse(self.part(template, **values), status, {"Vary": "Accept-Language, Cookie"})

    def part(self, template: str, **values: Any) -> str:
        """Return a template filled in."""
        url = self.request.url
        here = f"{url.path}?{url.query}" if url.query else url.path
        return (
            _templates()
            .get_template(template)
            .render(t=self.words, visitor=self, here=here, version=__version__, **values)
        )

    async def form(self) -> Mapping[str, str]:
        """Return the fields of the form that was sent.

        Raises:
            RefusedError: no page of this service has made it for this reader.
        """
        body = await self.request.body()
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise RefusedError("bad-request", "The form cannot be read.") from None
        if any("\0" in text for pair in pairs for text in pair):
            raise RefusedError("bad-request", "The form cannot be read.")
        fields = dict(pairs)
        if fields.get("form_value", "") != self.form_value:
            raise RefusedError("form-refused", self.words("error.form"))
        return fields


def link(*path: str, **query: object) -> str:
    """Return the address of a page; parameters without a value are left out."""
    parts = "/".join(quote(part, safe="") for part in path)
    given = {name: value for name, value in query.items() if value not in (None, "")}
    address = f"{PREFIX}/{parts}" if parts else PREFIX
    return f"{address}?{urlencode(given)}" if given else address


def is_local_page(address: str) -> bool:
    """Return whether an address that was sent with a form is one of our pages."""
    return (address == PREFIX or address.startswith((f"{PREFIX}/", f"{PREFIX}?"))) and address.isprintable()


def reader_of(request: Request) -> Visitor:
    """Return who reads a page that shows rows.

    Raises:
        LoginNeededError: there is no token.
        RefusedError: the token does not have the scope.
    """
    visitor = Visitor(request)
    if visitor.client is None:
        raise LoginNeededError
    if READ not in visitor.client.scopes:
        raise RefusedError("scope-missing", visitor.words("error.scope", scope=READ))
    return visitor


Anybody = Annotated[Visitor, Depends(Visitor)]
Reader = Annotated[Visitor, Depends(reader_of)]


class PageRoute(APIRoute):
    """Answers errors with pages instead of JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def answer_page(request: Request) -> Response:
            try:
                return await answer(request)
            except LoginNeededError:
                return RedirectResponse(link("login"), 303)
            except RefusedError as error:
                return error_page(request, problem(error.name, error.detail), Phrase(error.detail))
            except DedupError as error:
                return error_page(request, problem_of_error(error), error)
            except HTTPException as error:
                return error_page(request, problem_of_status(error.status_code, error.detail))
            except RequestValidationError:
                detail = Phrase("A value of the address cannot be used.")
                return error_page(request, problem("invalid", detail), detail)

        return answer_page


def error_page(request: Request, found: Response, error: DedupError | Phrase | None = None) -> Response:
    """Return a problem as a page.

    Args:
        request: of the reader.
        found: the problem.
        error: the same detail as an error or a phrase, which can be translated.
    """
    visitor = Visitor(request)
    said = json.loads(bytes(found.body))
    name = str(said["type"]).rpartition("#")[2]
    title = visitor.words.name("problem", name)
    english = str(said["detail"])
    detail = _detail(english, error, visitor.words.language)
    page = visitor.page(
        "error.html",
        found.status_code,
        title=title if title != name else said["title"],
        detail=detail,
        # Of a page in another language, what has no translation; our own words are in its language already.
        is_english=detail == english and english.isascii() and visitor.words.language != ENGLISH,
    )
    if "retry-after" in found.headers:
        page.headers["Retry-After"] = found.headers["retry-after"]
    return page


def _detail(detail: str, error: DedupError | Phrase | None, language: str) -> str:
    """Return the detail of a problem in a language; one that is not the error's own is a fixed sentence."""
    if error is not None and str(error) == detail:
        return error.in_language(language)
    return lookup(detail, language)


@lru_cache
def _templates() -> Environment:
    loader = PackageLoader("db_dedup.web.console")
    found = Environment(
        autoescape=True, loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.globals["link"] = link
    found.filters["visible"] = visible
    return found
