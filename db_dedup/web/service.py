"""The service as an ASGI application."""

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from db_dedup import __version__
from db_dedup.app import Database
from db_dedup.app.tokens import Tokens as ClientTokens
from db_dedup.config import ServerSettings, Settings
from db_dedup.errors import DedupError
from db_dedup.translation import Phrase
from db_dedup.web import answers, checks, health, labels, reservations
from db_dedup.web.console.mount import add_console
from db_dedup.web.console.page_security import is_page
from db_dedup.web.console.site import error_page
from db_dedup.web.context import Context
from db_dedup.web.docs_page import docs_page, finished_document
from db_dedup.web.guard import Guard
from db_dedup.web.problems import (
    RefusedError,
    invalid_request,
    problem,
    problem_of_error,
    problem_of_status,
)
from db_dedup.web.readiness import Readiness
from db_dedup.web.request_counts import RequestCounts
from db_dedup.web.tables import Tables
from db_dedup.web.thread_limit import LimitedThreads

_DESCRIPTION: Final = (
    "Near-duplicate rows of the watched tables. Errors are problem details (RFC 9457). "
    "Nothing of the user's tables is changed."
)
_ROUTERS: Final = (checks.router, reservations.router, answers.router, labels.router, health.router)


def make_service(
    database: Database, settings: Settings | None, server: ServerSettings, tokens: ClientTokens
) -> tuple[Guard, Context]:
    """Return (the application, what its requests work with).

    Args:
        database: of the rows and of our tables.
        settings: the tables to serve, by these settings; None for all that are watched, as they are stored.
        server: limits and allowed names.
        tokens: of the clients.
    """
    tables = Tables(database, settings)
    threads = LimitedThreads(server.threads, server.max_waiting, server.answer_seconds)
    context = Context(tables, threads, Readiness(database, threads), RequestCounts(), server.read_only)
    app = FastAPI(
        title="db-dedup",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        strict_content_type=True,
    )
    app.state.context = context
    for router in _ROUTERS:
        app.include_router(router)
    add_console(app, server, tokens)
    _add_documents(app)
    _add_handlers(app)
    # FastAPI makes the models of the routes' parameters when they are first needed: not during a request.
    app.openapi()
    return Guard(app, server, tokens, context.requests.observe), context


def _add_documents(app: FastAPI) -> None:
    @lru_cache(maxsize=1)
    def finished() -> dict[str, Any]:
        return finished_document(app.openapi())

    @app.get("/v1/openapi.json", include_in_schema=False)
    async def document() -> Response:
        return JSONResponse(finished())

    @app.get("/v1/docs", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(docs_page(finished()))


def _add_handlers(app: FastAPI) -> None:
    @app.exception_handler(DedupError)
    async def of_error(_: Request, error: DedupError) -> Response:
        return problem_of_error(error)

    @app.exception_handler(Exception)
    async def of_fault(_: Request, __: Exception) -> Response:  # the guard logs it
        return problem("failed", "The service failed.")

    @app.exception_handler(HTTPException)
    async def of_status(request: Request, error: HTTPException) -> Response:
        if isinstance(error, RefusedError):
            return problem(error.name, error.detail, **error.more)
        if error.status_code == HTTPStatus.NOT_FOUND and is_page(request.url.path):
            detail = Phrase("The address may be mistyped. Look for the page from the list of tables.")
            return error_page(request, problem("not-found", detail), detail)
        found = problem_of_status(error.status_code, error.detail)
        # With the status 405 the framework names the methods that the address has.
        if allowed := (error.headers or {}).get("Allow"):
            found.headers["Allow"] = allowed
        return found

    @app.exception_handler(RequestValidationError)
    async def of_form(_: Request, error: RequestValidationError) -> Response:
        faults: Sequence[Any] = error.errors()
        return invalid_request(faults)
