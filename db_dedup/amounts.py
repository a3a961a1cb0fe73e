"""Amounts in words: `1 pair`, `2 pairs`."""


def counted(amount: int, one: str, many: str | None = None) -> str:
    """The amount and the noun that fits it; the plural is the singular with an s unless it is given."""
    return f"{amount:,} {one if amount == 1 else many or one + 's'}"
