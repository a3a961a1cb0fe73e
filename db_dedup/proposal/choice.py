"""The columns to compare, chosen by what a sample of each column looks like."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from db_dedup.amounts import counted
from db_dedup.proposal.profile import ColumnProfile

_WORDS_OF_A_TEXT: Final = 6
"""A column whose values have as many words on average is made of texts rather than of names or categories."""
_WORDS_OF_A_TITLE: Final = 3
_REPEATED_BELOW: Final = 0.35
"""A column with a smaller share of distinct values holds categories, or set phrases."""
_RARE_BELOW: Final = 0.1
_ENOUGH_TO_JUDGE: Final = 20
"""Among fewer values, that some are equal says nothing: the table may be a sample of duplicates."""
_NAMES_OF_ANSWERS: Final = ("repl", "respon", "answer", "resolution", "答复", "回复", "处理结果", "办理结果")
_IDENTIFYING: Final = (
    "name", "address", "phone", "mobile", "email", "e-mail", "birth", "zip", "postcode", "postal", "street",
    "city", "suburb", "passport", "ssn", "soc_sec", "姓名", "名称", "地址", "住址", "电话", "手机", "邮箱",
    "身份证", "证件", "生日", "出生", "邮编",
)  # fmt: skip


@dataclass(frozen=True)
class ColumnChoice:
    """Whether a column should count, and why.

    Attributes:
        is_chosen: it should, as a text.
        reason: a few words for people.
    """

    name: str
    is_chosen: bool
    reason: str


@dataclass(frozen=True)
class TableProposal:
    """The settings proposed for a table.

    Attributes:
        table: its name.
        key: the columns that identify a row.
        order: the column that tells which row was received first; None: the key.
        columns: every other column, with what was decided of it.
    """

    table: str
    key: tuple[str, ...]
    order: str | None
    columns: tuple[ColumnChoice, ...]

    @property
    def chosen(self) -> list[str]:
        """The names of the columns that should count."""
        return [column.name for column in self.columns if column.is_chosen]


def choose_columns(profiles: Sequence[ColumnProfile]) -> tuple[ColumnChoice, ...]:
    """Choose the columns of a table that tell whether two rows are the same matter.

    Where some column holds texts, texts alone count: who wrote, through which channel and when say nothing of
    the matter. A table without texts is a register, in which names, addresses and numbers identify a row.
    Nothing is chosen where there is neither.
    """
    texts = [profile for profile in profiles if _is_of_words(profile, _WORDS_OF_A_TEXT)]
    is_register = not texts and sum(map(_is_identifying, profiles)) > 1
    main = max(texts, key=_amount_of_text, default=None)
    return tuple(
        _choose_in_register(profile) if is_register else _choose_by_text(profile, main)
        for profile in profiles
    )


def choose_by_type(columns: Iterable[tuple[str, bool]]) -> tuple[ColumnChoice, ...]:
    """Choose the columns of a table without rows: (name, whether its type holds long texts) of each."""
    return tuple(
        ColumnChoice(name, is_long, "its type holds long texts" if is_long else "its type holds short values")
        for name, is_long in columns
    )


def _choose_by_text(profile: ColumnProfile, main: ColumnProfile | None) -> ColumnChoice:
    if profile is main:
        return ColumnChoice(profile.name, True, _description(profile))
    if (fault := _fault(profile)) is not None:
        return ColumnChoice(profile.name, False, fault)
    if main is not None and _is_named(profile, _NAMES_OF_ANSWERS):
        return ColumnChoice(profile.name, False, "by its name an answer: answers share set sentences")
    if profile.mean_words < _WORDS_OF_A_TITLE:
        return ColumnChoice(profile.name, False, f"too short for a text: {_description(profile)}")
    return ColumnChoice(profile.name, True, _description(profile))


def _choose_in_register(profile: ColumnProfile) -> ColumnChoice:
    if _is_identifying(profile):
        return ColumnChoice(profile.name, True, f"identifies a row: {_description(profile)}")
    return ColumnChoice(profile.name, False, _fault(profile) or f"does not identify: {_description(profile)}")


def _fault(profile: ColumnProfile) -> str | None:
    """Why a column says nothing of a row's matter, whatever else the table has."""
    if not profile.values:
        return "empty"
    if profile.distinct <= 2 and _is_repeated(profile):
        return "a flag: 2 different values" if profile.distinct == 2 else "the same value in every row"
    if profile.form != "text":
        is_identifier = profile.form == "code" and profile.distinct_share > _REPEATED_BELOW
        return "an identifier" if is_identifier else f"a {profile.form}"
    if _is_repeated(profile):
        return f"a category: {counted(profile.distinct, 'different value')}"
    if profile.filled_share < _RARE_BELOW:
        return f"filled in only {profile.filled_share:.0%} of the rows"
    return None


def _is_of_words(profile: ColumnProfile, words: float) -> bool:
    return (
        profile.form == "text"
        and profile.mean_words >= words
        and profile.filled_share >= _RARE_BELOW
        and (not _is_repeated(profile) or (profile.distinct > 2 and profile.mean_words >= 2 * words))
    )


def _is_repeated(profile: ColumnProfile) -> bool:
    """Whether the same few values occur again and again."""
    return profile.values >= _ENOUGH_TO_JUDGE and profile.distinct_share < _REPEATED_BELOW


def _is_identifying(profile: ColumnProfile) -> bool:
    is_usual = profile.filled_share >= _RARE_BELOW and not _is_repeated(profile)
    return is_usual and (profile.form == "text" or _is_named(profile, _IDENTIFYING))


def _is_named(profile: ColumnProfile, words: Sequence[str]) -> bool:
    name = profile.name.casefold()
    return any(word in name for word in words)


def _amount_of_text(profile: ColumnProfile) -> float:
    """Many words in many rows, of which few are the same and few are answers."""
    is_answer = _is_named(profile, _NAMES_OF_ANSWERS)
    return profile.mean_words * profile.filled_share * profile.distinct_share * (0.01 if is_answer else 1.0)


def _description(profile: ColumnProfile) -> str:
    share = "" if profile.filled_share > 0.995 else f", filled in {profile.filled_share:.0%} of the rows"
    return f"{profile.mean_length:,.0f} characters on average{share}"
