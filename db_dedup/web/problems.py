"""Errors as problem details (RFC 9457): JSON with type, title, status and detail."""

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from db_dedup.errors import (
    ConfigError,
    DatabaseError,
    DedupError,
    MissingExtraError,
    NotScannedError,
    OutdatedRecipeError,
    RecipeDiffersError,
    ReservationExpiredError,
    RowKeyError,
    RowNotFoundError,
    SchemaMissingError,
    TableGoneError,
    TooMuchAtOnceError,
    TriggerError,
    UnknownNameError,
)
from db_dedup.translation import Phrase

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
_RETRY_SECONDS: Final = 5
_WATCHED: Final = "watched table"


class Problem(NamedTuple):
    """A kind of error: its name, the status of its answers, and what it means."""

    name: str
    status: int
    title: str


PROBLEMS: Final = (
    Problem("bad-request", 400, "The request is not valid HTTP or JSON."),
    Problem("token-missing", 401, "A token is missing or unknown."),
    Problem("scope-missing", 403, "The token does not allow this."),
    Problem("read-only", 403, "The service takes neither labels nor reservations."),
    Problem("origin-refused", 403, "A page of another site sent the request."),
    Problem("proxy-required", 403, "The request did not come through the declared proxy."),
    Problem("not-found", 404, "There is nothing under this address."),
    Problem("unknown-table", 404, "No such table is watched."),
    Problem("unknown-row", 404, "There is no such row, or it is in no group."),
    Problem(
        "form-refused",
        403,
        "The form was not made by a page of this service, or before its start or a change of its tokens.",
    ),
    Problem("method-refused", 405, "The address has no such method."),
    Problem("too-slow", 408, "The body of the request took too long."),
    Problem("not-ready", 409, "The table cannot be used before an administrator has run a command."),
    Problem("duplicate", 409, "The record is a duplicate; matches says of what."),
    Problem("expired", 409, "The reservation has expired: check the record again."),
    Problem("too-large", 413, "The body of the request is too large."),
    Problem("not-json", 415, "The body is not declared as JSON."),
    Problem("not-a-form", 415, "The body is not declared as a form."),
    Problem("host-refused", 421, "The service does not answer under this name."),
    Problem("invalid", 422, "A value of the request cannot be used."),
    Problem("failed", 500, "The service or its database failed."),
    Problem("not-installed", 501, "The service was installed without the package that this needs."),
    Problem("busy", 503, "The service or its database is busy: try again."),
    Problem("timed-out", 504, "The answer took too long."),
)
"""Every problem that the service reports, in the order of the documentation page."""

_UNREAD: Final = ("too-slow", "too-large")
"""Problems after which the rest of the body is not read."""
_VALIDATOR_PREFIX: Final = "Value error, "
"""What pydantic writes before our own messages."""
_BY_NAME: Final = {problem.name: problem for problem in PROBLEMS}
_NAME_OF_STATUS: Final = {400: "bad-request", 404: "not-found", 405: "method-refused", 422: "invalid"}

_NAME_OF_ERROR: Final[Mapping[type[DedupError], str]] = {
    RowNotFoundError: "unknown-row",
    RowKeyError: "invalid",
    ReservationExpiredError: "expired",
    TooMuchAtOnceError: "too-large",
    NotScannedError: "not-ready",
    RecipeDiffersError: "not-ready",
    OutdatedRecipeError: "not-ready",
    SchemaMissingError: "not-ready",
    TableGoneError: "not-ready",
    TriggerError: "not-ready",
    MissingExtraError: "not-installed",
    ConfigError: "invalid",
}
"""The first class that an error is an instance of decides."""


class RefusedError(HTTPException):
    """A request that is answered with a problem.

    FastAPI passes on errors of this base that are raised while it reads a body.

    Args:
        name: of the problem.
        detail: what is wrong with this request, and what would be right.
        more: other members of the JSON object.
    """

    def __init__(self, name: str, detail: str, **more: object) -> None:
        super().__init__(_BY_NAME[name].status, detail)
        self.name, self.more = name, more


def unreadable_tokens(error: DedupError) -> RefusedError:
    """Log why the tokens cannot be read, and return an answer that does not name their file."""
    logger.error("no tokens: %s", error)
    return RefusedError("failed", "The tokens of the service cannot be read.")


def problem(name: str, detail: str, **more: Any) -> Response:
    """Return the answer for a problem.

    Args:
        name: of the problem.
        detail: one sentence about this request.
        more: other members of the JSON object.
    """
    kind = _BY_NAME[name]
    document = {
        "type": f"/v1/docs#{name}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        **more,
    }
    headers: dict[str, str] = {}
    if kind.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(_RETRY_SECONDS)
    if kind.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="db-dedup"'
    if name in _UNREAD:
        headers["Connection"] = "close"
    body = json.dumps(document, ensure_ascii=True)
    return Response(body, kind.status, headers, MEDIA_TYPE)


def problem_of_status(status: int, detail: str) -> Response:
    """Return the answer for an error that the framework found."""
    return problem(_NAME_OF_STATUS.get(status, "bad-request"), detail)


def problem_of_error(error: DedupError) -> Response:
    """Return the answer for an error of ours. The words of a driver are left out: they may show values."""
    if isinstance(error, UnknownNameError) and error.kind == _WATCHED:
        return problem("unknown-table", str(error))
    if error.is_transient:
        return problem("busy", Phrase("The database or the table is busy. Try again in some seconds."))
    for kind, name in _NAME_OF_ERROR.items():
        if isinstance(error, kind):
            return problem(name, str(error))
    if isinstance(error, DatabaseError):
        return problem("failed", Phrase("The database refused. `db-dedup status` shows its state."))
    return problem("failed", str(error))


def invalid_request(faults: Sequence[Mapping[str, Any]]) -> Response:
    """Return the answer for a request that does not have the documented form; its values are not repeated."""
    errors = [
        {
            "where": ".".join(str(part) for part in fault["loc"]),
            "fault": str(fault["msg"]).removeprefix(_VALIDATOR_PREFIX),
        }
        for fault in faults
    ]
    if any(fault["type"] == "json_invalid" for fault in faults):
        return problem("bad-request", "The body is not valid JSON.", errors=errors)
    first = errors[0] if errors else {"where": "the request", "fault": "is not valid"}
    return problem("invalid", "{where}: {fault}".format(**first), errors=errors)
