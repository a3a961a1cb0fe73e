"""Add the review console to the service."""

import secrets

from fastapi import FastAPI

from db_dedup.app.tokens import Tokens
from db_dedup.config import ServerSettings
from db_dedup.web.console import group_page, groups_page, login, plots_page
from db_dedup.web.console.site import Console


def add_console(app: FastAPI, server: ServerSettings, tokens: Tokens) -> None:
    """Add the pages.

    Args:
        app: the service.
        server: its settings.
        tokens: of the clients.
    """
    is_encrypted = server.certificate is not None or bool(server.proxies)
    app.state.console = Console(tokens, secrets.token_bytes(32), is_encrypted)
    for pages in (login, groups_page, group_page, plots_page):
        app.include_router(pages.router)
