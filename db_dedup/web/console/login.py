"""The pages that need no token: log in and out, the language, and the static files."""

from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

from db_dedup.translation import LANGUAGES
from db_dedup.web.console.page_security import LANGUAGE_COOKIE, PREFIX, TOKEN_COOKIE
from db_dedup.web.console.site import Anybody, PageRoute, Visitor, is_local_page, link
from db_dedup.web.problems import RefusedError

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_STATIC: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_YEAR: Final = 365 * 24 * 3600


@router.get("/")
@router.get(f"{PREFIX}/")
async def root() -> Response:
    """Lead to the console."""
    return RedirectResponse(PREFIX, 303)


@router.get(f"{PREFIX}/static/{{name}}")
async def static(name: str) -> Response:
    """Return a file that pages load."""
    if name not in _STATIC:
        raise RefusedError("not-found", "There is no such file.")
    return Response(_content(name), media_type=_STATIC[name])


@router.get(f"{PREFIX}/login")
async def show_login(visitor: Anybody) -> Response:
    """Ask for a token."""
    if visitor.client is not None:
        return RedirectResponse(PREFIX, 303)
    return visitor.page("login.html", fault="")


@router.post(f"{PREFIX}/login")
async def log_in(visitor: Anybody) -> Response:
    """Keep the reader's token in a cookie that no script can read."""
    token = (await visitor.form()).get("token", "").strip()
    if visitor.console.tokens.client(token) is None:
        return visitor.page("login.html", 401, fault=visitor.words("login.unknown"))
    answer = RedirectResponse(PREFIX, 303)
    _set_cookie(visitor, answer, TOKEN_COOKIE, token, None)
    return answer


@router.post(f"{PREFIX}/logout")
async def log_out(visitor: Anybody) -> Response:
    """Forget the token."""
    await visitor.form()
    answer = RedirectResponse(link("login"), 303)
    answer.delete_cookie(TOKEN_COOKIE, path="/", httponly=True, samesite="strict")
    return answer


@router.get(f"{PREFIX}/language")
async def choose(
    visitor: Anybody, to: Annotated[str, Query(max_length=10)], back: Annotated[str, Query(max_length=4000)]
) -> Response:
    """Show the pages in another language from now on."""
    answer = RedirectResponse(back if is_local_page(back) else PREFIX, 303)
    if to in LANGUAGES:
        _set_cookie(visitor, answer, LANGUAGE_COOKIE, to, _YEAR)
    return answer


def _set_cookie(visitor: Visitor, answer: Response, name: str, value: str, seconds: int | None) -> None:
    # Behind a TLS proxy on this machine, only the browser's Origin says that its connection is encrypted.
    is_https = visitor.request.headers.get("origin", "").startswith("https://")
    secure = visitor.console.is_encrypted or is_https
    answer.set_cookie(name, value, seconds, path="/", secure=secure, httponly=True, samesite="strict")


@lru_cache
def _content(name: str) -> bytes:
    return files("db_dedup.web.console").joinpath("static", name).read_bytes()
