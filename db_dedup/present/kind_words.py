"""What kind of pair two rows are, in words."""

from typing import Final

from db_dedup.present.visible import visible
from db_dedup.records.kinds import Kind
from db_dedup.translation import tr

_KINDS: Final[dict[Kind, str]] = {
    "copy": "Kind: copy, the same text again",
    "edited": "Kind: edited, the same text with changes",
    "contained": "Kind: contained, one is part of the other",
    "partial": "Kind: partial, a part is the same",
}
_CONTAINED: Final = "Kind: contained, row {key} is part of the other"
_OTHER_PLACE: Final = "{kind}; each names a place or organisation that the other does not"


def kind_words(kind: Kind, contained_key: str | None, other_place: bool | None) -> str:
    """Return a sentence about the kind of a pair and its flag."""
    said = tr(_KINDS[kind])
    if contained_key is not None:
        said = tr(_CONTAINED, key=visible(contained_key))
    if other_place:
        said = tr(_OTHER_PLACE, kind=said)
    return tr("{sentence}.", sentence=said)
