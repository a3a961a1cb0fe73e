"""What all pages work with."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from pydantic import Field
from sqlalchemy import Engine

from db_dedup import Deduplicator

from .listing import Lists

LARGEST_NUMBER = 2**31 - 1
"""Of a petition: PostgreSQL compares no larger one with an integer column."""

Number = Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]
"""Of a petition, in an address; for any other number the page is missing."""


@dataclass(frozen=True)
class Context:
    """One for the whole application: a Deduplicator keeps what its checks have prepared."""

    engine: Engine
    dedup: Deduplicator
    lists: Lists


def context_of(request: Request) -> Context:
    """Return the context of the application."""
    found: Context = request.app.state.context
    return found


Office = Annotated[Context, Depends(context_of)]
