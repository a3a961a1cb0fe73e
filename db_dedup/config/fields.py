"""The types that settings are made of, and what every class of settings does."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from db_dedup.errors import InvalidArgumentError, UnknownNameError
from db_dedup.setting_faults import first_fault
from db_dedup.translation import Phrase

# The descriptions say what a setting takes; they end the error of one that has another value.
Weight = Annotated[int, Field(ge=1, le=1000, description="a whole number from 1 to 1000")]
Radius = Annotated[int, Field(ge=0, le=11, description="a whole number from 0 to 11")]
Share = Annotated[float, Field(ge=0, le=1, description="a number from 0 to 1")]
Count = Annotated[int, Field(ge=1, le=1_000_000_000, description="a whole number from 1 to 1000000000")]
Flag = Annotated[bool, Field(description="true or false")]
Name = Annotated[str, Field(description="a text")]
Words = Annotated[tuple[Name, ...], Field(description="a list of texts")]


class Frozen(BaseModel):
    """Settings of exact types: neither `"3"` nor `true` is a number.

    Raises:
        InvalidArgumentError: with the setting, its value and what it takes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, *args: object, **data: Any) -> None:
        name = type(self).__name__
        if args:
            raise InvalidArgumentError("{name} takes its settings by name, as in Text(weight=2)", name=name)
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidArgumentError(
                "{name}: {fault}", name=name, fault=first_fault(error, type(self))
            ) from None

    # Without this mark, as RootModel has it, pydantic would call the method for each part of a document, and
    # could not say any more where in it a fault is.
    vars(__init__)["__pydantic_base_init__"] = True


def check_known(kind: Phrase, given: Mapping[str, Any], known: set[str]) -> None:
    """Raise UnknownNameError for the first name that is not known."""
    for name in given:
        if name not in known:
            raise UnknownNameError(kind, name, known)
