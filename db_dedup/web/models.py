"""The JSON that requests and answers are made of; the OpenAPI document is made from these classes."""

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from db_dedup.records.forms import Form
from db_dedup.records.group_history import ChangeKind
from db_dedup.records.kinds import Kind

Key = Annotated[str, Field(description="A row key: of several columns, a JSON array as text.")]
Moment = Annotated[datetime, AfterValidator(lambda moment: moment.replace(tzinfo=UTC))]
"""A stored time, which is in UTC. With its zone, because the format date-time of OpenAPI requires one."""
Scalar = str | int | float | bool | None

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Request(BaseModel):
    """A body that a client sends."""

    model_config = ConfigDict(extra="forbid")


def _check_values(record: object) -> object:
    """Refuse what no column can take; the message is shorter than one for each type."""
    for name, value in record.items() if isinstance(record, dict) else ():
        if not isinstance(value, Scalar) or (isinstance(value, float) and not isfinite(value)):
            raise ValueError("each value is a text, a number, true, false or null")
        if _SURROGATE.search(name) or (isinstance(value, str) and _SURROGATE.search(value)):
            raise ValueError("a text has half of a surrogate pair, which is no character")
    return record


RecordGiven = Annotated[dict[str, Scalar], BeforeValidator(_check_values), Field(max_length=1000)]


class CheckRequest(_Request):
    """A record to check."""

    record: RecordGiven = Field(description="Column name to value. A column that is left out is NULL.")
    differences: bool = Field(
        False, description="Also answer what differs, with the texts of stored rows: needs the scope read."
    )


class ReserveRequest(CheckRequest):
    """A record to reserve."""

    seconds: int = Field(60, ge=1, le=600, description="Until the reservation expires.")
    row_key: str | None = Field(
        None,
        max_length=700,
        description="The key of the row that will be stored, if it is known: then the reservation ends as "
        "soon as the row is committed.",
    )


class ReservationAnswer(BaseModel):
    """A reservation."""

    reservation: str = Field(description="Its name, to confirm or release it.")
    expires_at: Moment


class ConfirmRequest(_Request):
    """Which row was stored."""

    row_key: str | None = Field(
        None,
        max_length=700,
        description="The key of the row. It may be left out if it was given with the reservation; then an "
        "expired confirmation names the row itself among the matches, too.",
    )
    record: RecordGiven | None = Field(
        None,
        description="The record that was stored: if the reservation has expired, it is checked again, and "
        "the problem has matches.",
    )


class NamedDifference(BaseModel):
    """What only one of the two texts names."""

    only_record: list[str]
    only_row: list[str]


class ChangedPart(BaseModel):
    """A place at which the two texts differ; one of the two may be empty."""

    column: str
    record: str
    row: str


class Differences(BaseModel):
    """In what a record and a stored row differ."""

    named: dict[str, NamedDifference] = Field(
        description="For places, people, numbers and dates: what only one of the two names."
    )
    changes: list[ChangedPart] = Field(description="The parts that differ, the first 50.")


class MatchAnswer(BaseModel):
    """A stored row that the record duplicates."""

    row_key: Key
    distance: int = Field(description="Bits in which the fingerprints differ, 0 to 64.")
    similarity: float | None = Field(description="By the measure of the table, 0 to 1.")
    group_id: str | None
    kind: Kind | None
    contained_key: str | None
    other_place: bool | None
    form: Form | None
    is_reserved: bool = Field(
        description="Another client has reserved it, and will store it; its row_key may be empty."
    )
    differences: Differences | None = Field(
        None, description="Only if they were asked for, and for the nearest 20 rows."
    )


class CheckAnswer(BaseModel):
    """Whether a record is a duplicate, and of which rows."""

    is_duplicate: bool
    too_little_text: bool = Field(description="The record has too little text to judge.")
    matches: list[MatchAnswer] = Field(description="The nearest first.")


class PairAnswer(BaseModel):
    """Two duplicate rows, the earlier-received first."""

    model_config = ConfigDict(from_attributes=True)

    key_a: Key
    key_b: Key
    distance: int
    similarity: float | None
    kind: Kind | None
    contained_key: str | None
    other_place: bool | None
    form: Form | None


class GroupAnswer(BaseModel):
    """A duplicate group."""

    model_config = ConfigDict(from_attributes=True)

    group_id: Key
    size: int
    representative_key: Key
    is_loose: bool
    is_abridged: bool


class PairPage(BaseModel):
    """Some pairs."""

    pairs: list[PairAnswer]
    next_cursor: str | None = Field(description="Send it as cursor for the next page; null on the last one.")


class GroupPage(BaseModel):
    """Some groups."""

    groups: list[GroupAnswer]
    next_cursor: str | None = Field(description="Send it as cursor for the next page; null on the last one.")


class MemberPage(BaseModel):
    """A group and some of its rows."""

    group: GroupAnswer
    row_keys: list[Key] = Field(description="The first page begins with the representative.")
    next_cursor: str | None = Field(description="Send it as cursor for the next page; null on the last one.")


class GroupChangeAnswer(BaseModel):
    """A change by which the id of a group does not lead to all its rows any more."""

    model_config = ConfigDict(from_attributes=True)

    group_id: Key
    new_group_id: str | None = Field(description="The group that has rows of it since then.")
    kind: ChangeKind
    size: int = Field(description="Rows before.")
    moved: int = Field(description="How many of these are in the new group.")
    new_size: int | None = Field(description="Rows of the new group.")
    changed_at: Moment
    scan: int | None = Field(description="The number of the scan that found it; null if it was the worker.")


class GroupHistoryAnswer(BaseModel):
    """What has become of an id that was or is that of a group."""

    model_config = ConfigDict(from_attributes=True)

    group_id: Key
    groups: list[GroupAnswer] = Field(description="The groups that it leads to now, the largest first.")
    changes: list[GroupChangeAnswer] = Field(
        description="Of the group, and of the groups that it has become, the earliest first."
    )
    origins: list[GroupChangeAnswer] = Field(
        description="The latest by which rows of other groups came to it, the latest first."
    )
    row_group_id: str | None = Field(description="The group that the row of this key is in now.")


class LabelGiven(_Request):
    """What a person says of two rows."""

    key_a: Key
    key_b: Key
    is_duplicate: bool


class LabelsRequest(_Request):
    """Labels to store."""

    labels: list[LabelGiven] = Field(min_length=1, max_length=500)


class LabelAnswer(BaseModel):
    """A stored label."""

    model_config = ConfigDict(from_attributes=True)

    key_a: Key
    key_b: Key
    is_duplicate: bool
    decided_at: Moment


class LabelPage(BaseModel):
    """Some labels, the oldest first."""

    labels: list[LabelAnswer]
    next_cursor: str | None = Field(description="Send it as cursor for the next page; null on the last one.")


class LabelOutcomeAnswer(BaseModel):
    """What has become of some labels."""

    model_config = ConfigDict(from_attributes=True)

    kept: int
    faults: list[str] = Field(description="A sentence for each label that could not be stored.")
    changes_answer: bool = Field(description="A pair is rejected now, or is no longer.")
    is_queued: bool = Field(description="The worker updates the groups; otherwise the next scan does.")
    withdrawn: bool | None = Field(None, description="What the withdrawn label said; null if there was none.")
    exact_duplicates: int = Field(
        0, description="Labels of exact duplicates as duplicates: they need no label, and none was stored."
    )


class TableNames(BaseModel):
    """The watched tables."""

    tables: list[str]


class Health(BaseModel):
    """That the service works."""

    status: str


class FieldFault(BaseModel):
    """What is wrong with one part of a request."""

    where: str
    fault: str


class ProblemAnswer(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(description="The kind of error; the address leads to its explanation.")
    title: str
    status: int
    detail: str = Field(description="What is wrong with this request, and what would be right.")
    matches: list[MatchAnswer] = Field(
        [], description="Of duplicate, and of expired if the request had the record: the rows like it."
    )
    leads_to: list[Key] = Field(
        [], description="Of unknown-row: the groups that have rows of the group that had this id."
    )
    errors: list[FieldFault] = Field([], description="Of invalid and bad-request: each fault of the request.")
