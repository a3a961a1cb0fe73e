"""The forms in which a post passes on another one, or answers it.

A row has the strongest form of its texts, as a number. A pair has the stronger form of its two rows. Rows of
tables whose normaliser knows no forms have NULL in the database.
"""

from typing import Final, Literal, get_args

Form = Literal["none", "reply", "unofficial_retweet", "official_retweet"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
"""The names of the forms, the weakest first; the position of a form is its number in the database."""

NONE: Final = 0
REPLY: Final = 1
UNOFFICIAL: Final = 2
OFFICIAL: Final = 3
UNKNOWN_FORM: Final = -1
"""Takes the place of a form's number if the normaliser of the table knows no forms."""


def form_of_pair(one: int | None, other: int | None) -> Form | None:
    """Return the form of a pair, given the numbers of its rows; None if a row has no number."""
    return None if one is None or other is None else FORMS[max(one, other)]
