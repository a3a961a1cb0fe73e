"""Amounts in words: `1 pair`, `2 pairs`."""

from db_dedup.translation import Phrase


def counted(amount: int, one: str, many: str | None = None) -> Phrase:
    """The amount and the noun that fits it; the plural is the singular with an s unless it is given."""
    return Phrase("{amount:,} " + one, "{amount:,} " + (many or one + "s"), amount=amount)
