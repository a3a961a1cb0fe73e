"""The layout of a text and the widths of its characters: differences without meaning."""

from dataclasses import dataclass
from random import Random

from .material import pick

LAYOUTS = ("plain", "scraped", "lines", "indented")
COMMON_LAYOUTS = ("plain",) * 5 + ("scraped",) * 3 + ("lines", "indented")
GAPS = ("\u00a0", " ", "\u3000", "\u00a0\u00a0", "\t")
_WIDE_DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
_NARROW_MARKS = str.maketrans("，！？：；", ",!?:;")


@dataclass(frozen=True, slots=True)
class Dress:
    """The white space and the widths of characters of a text; they never change its words."""

    layout: str = "plain"
    gap: str = ""
    wide_digits: bool = False
    narrow_marks: bool = False

    def put_on(self, salutation: str, sentences: tuple[str, ...], closing: str) -> str:
        """Return the whole text of a petition."""
        body = self.gap.join(sentences) + self.gap
        if self.layout == "lines":
            text = "\n".join(filter(None, (salutation, body, closing)))
        elif self.layout == "indented":
            text = "\r\n".join("\u3000\u3000" + part for part in (salutation, body, closing) if part)
        else:
            text = salutation + body + closing
        if self.layout == "scraped":
            text = f"\n\t\t\t\t\t{text}\n\t\t\t\t"
        if self.wide_digits:
            text = text.translate(_WIDE_DIGITS)
        return text.translate(_NARROW_MARKS) if self.narrow_marks else text


def draw_dress(rng: Random) -> Dress:
    """Return a random dress: mostly tidy, sometimes with odd white space or widths."""
    return Dress(
        layout=pick(rng, COMMON_LAYOUTS),
        gap=pick(rng, GAPS) if rng.random() < 0.06 else "",
        wide_digits=rng.random() < 0.05,
        narrow_marks=rng.random() < 0.07,
    )
