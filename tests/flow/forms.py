"""Forms around texts of random characters, and copies of a joint letter."""

import random
from collections import Counter
from collections.abc import Callable, Sequence

from db_dedup.flow.text.frames import measure_frames, without_frames
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.records.frames import NO_FRAMES, FrameList
from db_dedup.records.recipe import RecipeColumn

Form = Callable[[str, random.Random], str]
TEXT = [RecipeColumn("content", "text", 1)]
OPENING = "【工单编号】hx{number}【来电时间】{year}-{month}-{month} 10:{month}【诉求内容】"
CLOSING = "请贵单位在收到本工单后五个工作日内与来电人联系,核实情况后依法办理,并将结果反馈至本中心"


_IDEOGRAPHS = [each for each in map(chr, range(0x4E00, 0x5DA0)) if normalise_batch([each]) == [each]]


def random_text(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(_IDEOGRAPHS, k=length))


def random_words(rng: random.Random, count: int) -> str:
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randrange(2, 9))) for _ in range(count))


def unlike_texts(count: int = 300, shortest: int = 12) -> list[str]:
    rng = random.Random(5)
    return [random_text(rng, int(shortest * 40 ** rng.random())) for _ in range(count)]


def usual_form(text: str, rng: random.Random) -> str:
    """A form with fields of numbers and dates."""
    fields = {
        "number": rng.randrange(10**8),
        "year": rng.randrange(1990, 2030),
        "month": rng.randrange(1, 13),
    }
    return OPENING.format(**fields) + text + CLOSING


def named_form(text: str, rng: random.Random) -> str:
    """A form with labels between which names stand."""
    names = [random_text(rng, 2 + rng.randrange(2)) for _ in range(3)]
    labels = ("【来电人姓名】", "【受理人员姓名】", "【承办单位联系人】")
    head = "".join(label + name for label, name in zip(labels, names, strict=True))
    return f"{head}市民通过热线反映以下问题,请认真核实并依法处理,具体情况为:{text}"


def random_form(seed: int) -> Form:
    own = random.Random(100 + seed)
    opening, closing = random_text(own, 60), random_text(own, 50)
    return lambda text, rng: f"{opening}:{rng.randrange(10**6)}。{text}。{closing}"


def edited(text: str, rng: random.Random) -> str:
    """A copy with one to five characters replaced."""
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text))
        text = text[:at] + chr(0x4E00 + rng.randrange(4_000)) + text[at + 1 :]
    return text


def copies_of_letter(count: int) -> list[str]:
    rng = random.Random(6)
    letter = random_text(rng, 250)
    return [edited(letter, rng) for _ in range(count)]


def in_forms(texts: Sequence[str], forms: Sequence[Form]) -> list[str]:
    rng = random.Random(7)
    return [forms[number % len(forms)](text, rng) for number, text in enumerate(texts)]


def measured(texts: Sequence[str], former: FrameList = NO_FRAMES) -> FrameList:
    counts = Counter(texts)
    return measure_frames(TEXT, [normalise_batch(list(counts))], former, repeats=list(counts.values()))


def left_of(texts: Sequence[str], frames: FrameList) -> list[str]:
    return without_frames([texts], frames)[0]


FORMED = normalise_batch(in_forms(unlike_texts(), [usual_form]))
FRAMES = measured(FORMED)
