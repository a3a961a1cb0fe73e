"""The words of one petition: places, people, dates, amounts."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random

from db_dedup.sample.material import Subject, pick

DATE_STYLES = ("{y}年{m}月{d}日", "{y}-{m:02}-{d:02}", "{y}/{m}/{d}", "{y}.{m}.{d}")
_SLOT = re.compile(r"\{([^{}]*)\}")


class Slots(dict[str, str]):
    """The words in the slots of one petition; a named slot has the same word everywhere.

    A slot is a word of the subject (`{estate}`, or `{estate2}` for another one), a kind of date or number
    (`{date}`, `{phone}`), or a range such as `{2-9}`, which is drawn again every time.
    """

    def __init__(self, rng: Random, subject: Subject, received: datetime) -> None:
        """Begin with every slot open; all dates will be before `received`."""
        super().__init__()
        self.rng = rng
        self.subject = subject
        self.received = received
        self.date_style = pick(rng, DATE_STYLES)

    def __missing__(self, slot: str) -> str:
        """Draw the word of a slot when it is first used; a number from a range is not kept."""
        if slot[0].isdigit():
            return self._number(slot)
        value = self[slot] = self.draw(slot)
        return value

    def draw(self, slot: str) -> str:
        """Return a new word for the slot, without regard to its present word."""
        if slot[0].isdigit():
            return self._number(slot)
        slot = slot.rstrip("23456789")
        if slot in _MAKERS:
            return _MAKERS[slot](self)
        text = pick(self.rng, self.subject.words[slot]).choose(self.rng)
        return _SLOT.sub(lambda match: self.draw(match[1]), text) if "{" in text else text

    def fill(self, text: str) -> str:
        """Return the text with its slots filled."""
        return text.format_map(self) if "{" in text else text

    def _number(self, bounds: str) -> str:
        low, _, high = bounds.partition("-")
        return str(self._between(int(low), int(high)))

    def _between(self, low: int, high: int) -> int:
        return low + int(self.rng.random() * (high - low + 1))

    def _date(self, days_ago: int = 0) -> str:
        day = self.received - timedelta(days=days_ago)
        return self.date_style.format(y=day.year, m=day.month, d=day.day)

    def _earlier_date(self) -> str:
        return self._date(self._between(20, 500))

    def _month(self) -> str:
        day = self.received - timedelta(days=self._between(40, 400))
        return f"{day.year}年{day.month}月"

    def _phone(self) -> str:
        return f"1{pick(self.rng, '3578')}{self._between(0, 999_999_999):09}"

    def _serial(self) -> str:
        return f"{self.received:%Y%m%d}{self._between(0, 999_999):06}"


_MAKERS: dict[str, Callable[[Slots], str]] = {
    "date": Slots._earlier_date,
    "sent": Slots._date,
    "month": Slots._month,
    "phone": Slots._phone,
    "serial": Slots._serial,
}
