"""The white space of a text and the widths of its characters: differences without meaning."""

from dataclasses import dataclass
from random import Random

from db_dedup.sample.material import pick

STYLES = ("plain", "scraped", "lines", "indented")
COMMON_STYLES = ("plain",) * 5 + ("scraped",) * 3 + ("lines", "indented")
GAPS = ("\u00a0", " ", "\u3000", "\u00a0\u00a0", "\t")
_WIDE_DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
_NARROW_MARKS = str.maketrans("，！？：；", ",!?:;")


@dataclass(frozen=True, slots=True)
class Layout:
    """The white space of a text and the widths of its characters; its words stay the same."""

    style: str = "plain"
    gap: str = ""
    wide_digits: bool = False
    narrow_marks: bool = False

    def render(self, salutation: str, sentences: tuple[str, ...], closing: str) -> str:
        """Return the whole text of a petition."""
        body = self.gap.join(sentences) + self.gap
        if self.style == "lines":
            text = "\n".join(filter(None, (salutation, body, closing)))
        elif self.style == "indented":
            text = "\r\n".join("\u3000\u3000" + part for part in (salutation, body, closing) if part)
        else:
            text = salutation + body + closing
        if self.style == "scraped":
            text = f"\n\t\t\t\t\t{text}\n\t\t\t\t"
        if self.wide_digits:
            text = text.translate(_WIDE_DIGITS)
        return text.translate(_NARROW_MARKS) if self.narrow_marks else text


def draw_layout(rng: Random) -> Layout:
    """Return a random layout: mostly tidy, sometimes with odd white space or widths."""
    return Layout(
        style=pick(rng, COMMON_STYLES),
        gap=pick(rng, GAPS) if rng.random() < 0.06 else "",
        wide_digits=rng.random() < 0.05,
        narrow_marks=rng.random() < 0.07,
    )
