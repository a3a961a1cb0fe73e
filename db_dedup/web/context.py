"""What the pages of the service share: the tables, the threads, and who may call what."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from db_dedup.app.tokens import CHECK, LABEL, READ
from db_dedup.web.cursors import LONGEST_CURSOR
from db_dedup.web.problems import RefusedError
from db_dedup.web.readiness import Readiness
from db_dedup.web.request_counts import RequestCounts
from db_dedup.web.tables import Tables
from db_dedup.web.thread_limit import LimitedThreads

_BEARER: Final = HTTPBearer(auto_error=False, description="A token of `db-dedup serve --new-token SCOPES`.")
_Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]


@dataclass(frozen=True)
class Context:
    """What a request works with."""

    tables: Tables
    threads: LimitedThreads
    readiness: Readiness
    requests: RequestCounts
    is_read_only: bool


def context_of(request: Request) -> Context:
    """Return the context of the service."""
    found: Context = request.app.state.context
    return found


def require_scope(request: Request, scope: str) -> None:
    """Check what the client may do.

    Raises:
        RefusedError: its token does not have the scope.
    """
    client = request.state.client
    if client is None or scope not in client.scopes:
        raise RefusedError("scope-missing", "This needs a token with the scope {scope}.".format(scope=scope))


def _requiring(scope: str) -> Callable[..., None]:
    # The credentials are a parameter so that the OpenAPI document names them; the guard has checked them.
    def check_scope(request: Request, _: _Credentials) -> None:
        require_scope(request, scope)

    return check_scope


def _refuse_if_read_only(request: Request) -> None:
    if context_of(request).is_read_only:
        raise RefusedError("read-only", "This service only reads: use one that is not read-only.")


WRITES: Final[Any] = Depends(_refuse_if_read_only)
NEEDS_READ: Final[Any] = Depends(_requiring(READ))
NEEDS_CHECK: Final[Any] = Depends(_requiring(CHECK))
NEEDS_LABEL: Final[Any] = Depends(_requiring(LABEL))

Ctx = Annotated[Context, Depends(context_of)]
TableName = Annotated[str, Path(description="A watched table.", max_length=300)]
ReservationName = Annotated[str, Path(description="The name of a reservation.", max_length=64)]
Cursor = Annotated[
    str | None, Query(description="next_cursor of the page before.", max_length=LONGEST_CURSOR)
]
Limit = Annotated[int, Query(ge=2, le=1000, description="The most entries of a page.")]
RowKeyQuery = Annotated[
    str, Query(description="A row key: of several columns, a JSON array.", max_length=700)
]
