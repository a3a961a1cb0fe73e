"""The application: its pages, its headers and its errors."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

from db_dedup import Database, DedupError, Deduplicator

from . import reading, writing
from .context import Context
from .listing import Lists
from .models import open_database
from .visitor import RefusedError, Visitor

LOG = logging.getLogger(__name__)
HOSTS = ("127.0.0.1", "localhost")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",  # petitions do not stay on a shared computer
}


def make_app(url: str, hosts: tuple[str, ...] = HOSTS) -> FastAPI:
    """The application on a database that start.py has prepared, for browsers that ask for these hosts."""
    engine = open_database(url)
    database = Database(engine)
    dedup = Deduplicator(database, "petitions")  # by the settings of the last scan

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # The first check prepares the segmenter and compiles: not while a clerk waits for the table.
        await run_in_threadpool(dedup.make_ready)
        yield
        engine.dispose()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.context = Context(engine, dedup, Lists(database.namespace))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    app.include_router(reading.router)
    app.include_router(writing.router)
    add_errors(app)

    @app.middleware("http")
    async def add_headers(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    return app


def add_errors(app: FastAPI) -> None:
    """Answer errors with pages."""

    @app.exception_handler(RefusedError)
    async def refused(request: Request, error: RefusedError) -> Response:
        return Visitor(request).page("error.html", error.status, word=error.word)

    @app.exception_handler(DedupError)
    async def failed(request: Request, error: DedupError) -> Response:
        if not error.is_transient:
            LOG.error("%s", error)
            return Visitor(request).page("error.html", 500, word="error.server")
        return busy(request)

    @app.exception_handler(OperationalError)
    async def unreachable(request: Request, error: OperationalError) -> Response:
        LOG.error("%s", error)
        return busy(request)

    @app.exception_handler(RequestValidationError)
    @app.exception_handler(HTTPException)
    async def missing(request: Request, _: Exception) -> Response:
        return Visitor(request).page("error.html", 404, word="error.missing")


def busy(request: Request) -> Response:
    """A page that asks to try again."""
    response = Visitor(request).page("error.html", 503, word="error.busy")
    response.headers["Retry-After"] = "5"
    return response
