"""A number with its noun in the singular or the plural: `1 pair`, `2 pairs`."""

from db_dedup.translation import Phrase


def counted(amount: int, one: str, many: str | None = None) -> Phrase:
    """Return the amount and the fitting noun; the plural is the singular with an s unless it is given."""
    return Phrase("{amount:,} " + one, "{amount:,} " + (many or one + "s"), amount=amount)
