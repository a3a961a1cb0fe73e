"""Choose the columns to compare, by a sample of the values of each column."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from db_dedup.plurals import counted
from db_dedup.proposal.profile import ColumnProfile
from db_dedup.proposal.risks import sounds_like_answers
from db_dedup.records import Family, SourceColumn
from db_dedup.translation import Phrase

_WORDS_OF_A_TEXT: Final = 6
"""A column whose values have this many words on average holds texts, not names or categories."""
_WORDS_OF_A_TITLE: Final = 3
_REPEATED_BELOW: Final = 0.35
"""A column with a smaller share of distinct values holds categories, or set phrases."""
_RARE_BELOW: Final = 0.1
_ENOUGH_TO_JUDGE: Final = 20
"""With fewer values a column is no category even if many are equal: they may be duplicate rows."""
_LONG_TYPE: Final = 50
"""Characters: a column whose type allows fewer holds names and codes."""
_IDENTIFYING: Final = (
    "name", "address", "phone", "mobile", "email", "e-mail", "birth", "zip", "postcode", "postal", "street",
    "city", "suburb", "passport", "ssn", "soc_sec", "姓名", "名称", "地址", "住址", "电话", "手机", "邮箱",
    "身份证", "证件", "生日", "出生", "邮编",
)  # fmt: skip
_ADDRESS: Final = ("address", "street", "地址", "住址")
"""A full address may have as many words as a text, but a table with no other text is a register."""
_LENGTH: Final = "{length:,.0f} characters on average"
_LENGTH_AND_SHARE: Final = "{length:,.0f} characters on average, filled in {share:.0%} of the rows"
_FORMS: Final = {
    "date": Phrase("a date"),
    "unsorted date": Phrase("a date whose texts do not sort by time"),
    "number": Phrase("a number"),
    "JSON": Phrase("a JSON"),
    "link or file name": Phrase("a link or file name"),
    "code": Phrase("a code"),
    "flag": Phrase("a flag"),
    "binary": Phrase("a binary"),
}
_SHORT: Final = "too short for a text: {description}"
_IDENTIFIES: Final = "identifies a row: {description}"
_NOT_IDENTIFYING: Final = "does not identify: {description}"


@dataclass(frozen=True)
class ColumnChoice:
    """Whether a column should be compared, and why.

    Attributes:
        is_chosen: whether it should be compared, as a text.
        reason: a few words for people.
    """

    name: str
    is_chosen: bool
    reason: str


@dataclass(frozen=True)
class TableProposal:
    """The proposed settings of a table.

    Attributes:
        table: its name.
        key: the columns that identify a row.
        order: the column that says which row was received first; None for the key.
        columns: the choice for every other column.
        risks: a sentence for each thing that the table will suffer from.
    """

    table: str
    key: tuple[str, ...]
    order: str | None
    columns: tuple[ColumnChoice, ...]
    risks: tuple[str, ...] = ()

    @property
    def chosen(self) -> list[str]:
        """The names of the columns that should be compared."""
        return [column.name for column in self.columns if column.is_chosen]


def choose_columns(profiles: Sequence[ColumnProfile]) -> tuple[ColumnChoice, ...]:
    """Choose the columns that show whether two rows of a table are about the same matter.

    If the table has columns of texts, only these are chosen: writer, channel and time do not depend on the
    matter. A table without texts other than addresses is a register, in which names, addresses and numbers
    identify a row. Nothing is chosen if it has neither.
    """
    texts = [profile for profile in profiles if _is_text(profile)]
    is_register = all(map(_holds_addresses, texts)) and sum(map(_is_identifying, profiles)) > 1
    main = max(texts, key=_amount_of_text, default=None)
    return tuple(
        _choose_in_register(profile) if is_register else _choose_by_text(profile, main)
        for profile in profiles
    )


def choose_by_type(columns: Iterable[SourceColumn]) -> tuple[ColumnChoice, ...]:
    """Choose the columns of a table without rows."""
    return tuple(
        ColumnChoice(c.name, True, Phrase("its type holds long texts"))
        if _holds_long_texts(c)
        else ColumnChoice(c.name, False, Phrase("its type holds short values"))
        for c in columns
    )


def _holds_long_texts(column: SourceColumn) -> bool:
    return column.family is Family.TEXT and (column.max_length is None or column.max_length >= _LONG_TYPE)


def _choose_by_text(profile: ColumnProfile, main: ColumnProfile | None) -> ColumnChoice:
    if profile is main:
        return ColumnChoice(profile.name, True, _description(profile))
    if (fault := _fault(profile)) is not None:
        return ColumnChoice(profile.name, False, fault)
    if main is not None and sounds_like_answers(profile.name):
        return ColumnChoice(profile.name, False, Phrase("by its name an answer: answers share set sentences"))
    if profile.mean_words < _WORDS_OF_A_TITLE:
        return ColumnChoice(profile.name, False, Phrase(_SHORT, description=_description(profile)))
    return ColumnChoice(profile.name, True, _description(profile))


def _choose_in_register(profile: ColumnProfile) -> ColumnChoice:
    if _is_identifying(profile):
        return ColumnChoice(profile.name, True, Phrase(_IDENTIFIES, description=_description(profile)))
    fault = _fault(profile) or Phrase(_NOT_IDENTIFYING, description=_description(profile))
    return ColumnChoice(profile.name, False, fault)


def _fault(profile: ColumnProfile) -> str | None:
    """Return why a column should not be compared in any table; None if there is no such reason."""
    if not profile.values:
        return Phrase("empty")
    if profile.distinct <= 2 and _is_repeated(profile):
        return (
            Phrase("a flag: 2 different values")
            if profile.distinct == 2
            else Phrase("the same value in every row")
        )
    if profile.form != "text":
        is_identifier = profile.form == "code" and profile.distinct_share > _REPEATED_BELOW
        return Phrase("an identifier") if is_identifier else _FORMS[profile.form]
    if _is_repeated(profile):
        return Phrase("a category: {values}", values=counted(profile.distinct, "different value"))
    if profile.filled_share < _RARE_BELOW:
        return Phrase("filled in only {share:.0%} of the rows", share=profile.filled_share)
    return None


def _is_text(profile: ColumnProfile) -> bool:
    """Return whether a column holds texts, not names or categories."""
    is_long = profile.mean_words >= 2 * _WORDS_OF_A_TEXT
    return (
        profile.form == "text"
        and profile.mean_words >= _WORDS_OF_A_TEXT
        and profile.filled_share >= _RARE_BELOW
        and (not _is_repeated(profile) or (profile.distinct > 2 and is_long))
    )


def _holds_addresses(profile: ColumnProfile) -> bool:
    """Return whether a column holds addresses, by its name."""
    return any(word in profile.name.casefold() for word in _ADDRESS)


def _is_repeated(profile: ColumnProfile) -> bool:
    """Return whether a few values are repeated in most rows."""
    return profile.values >= _ENOUGH_TO_JUDGE and profile.distinct_share < _REPEATED_BELOW


def _is_identifying(profile: ColumnProfile) -> bool:
    is_usual = profile.filled_share >= _RARE_BELOW and not _is_repeated(profile)
    name = profile.name.casefold()
    return is_usual and (profile.form == "text" or any(word in name for word in _IDENTIFYING))


def _amount_of_text(profile: ColumnProfile) -> float:
    """Return a number that is larger for more words, more filled rows and more different values.

    It is small for a column of answers.
    """
    is_answer = sounds_like_answers(profile.name)
    return profile.mean_words * profile.filled_share * profile.distinct_share * (0.01 if is_answer else 1.0)


def _description(profile: ColumnProfile) -> str:
    template = _LENGTH if profile.filled_share > 0.995 else _LENGTH_AND_SHARE
    return Phrase(template, length=profile.mean_length, share=profile.filled_share)
