"""Unlike texts in planted forms, and copies of a joint letter among them."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from benchmarks.datasets import read_gold_pairs, read_petitions
from benchmarks.materials import Material, edited
from benchmarks.scores import Pair
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.sample import generate_petitions

TEXTS = 300
MOST_EDITS = 10
_LETTER_LENGTHS = (150, 500)
_SHORTEST, _LONGEST = 12, 3_000

Form = Callable[[str, random.Random], str]
"""Puts a text into a form."""

# fmt: off
_LABELS = (
    "工单编号", "来电时间", "联系电话", "受理渠道", "诉求类型", "办理时限", "承办单位", "诉求内容",
    "反映对象", "登记人员", "所属区域", "问题描述", "回访情况", "市民姓名", "事发地点", "来件方式",
)
# fmt: on
_OPENINGS = (
    "尊敬的领导您好,感谢您在百忙之中阅读我的来信,现将有关情况向您反映如下:",
    "市民通过热线反映以下问题,请贵单位认真核实并依法处理,具体情况为:",
    "网民在平台留言,按照属地管理和分级负责的原则转交办理,留言如下:",
    "您好,我是本市的一名普通居民,有件事情想请有关部门帮助协调解决,",
)
_CLOSINGS = (
    "请贵单位在收到本工单后五个工作日内与来电人联系,核实情况后依法依规办理,并将办理结果通过系统反馈至本中心,逾期未反馈将纳入考核。",
    "以上情况请予核实处理,办理完毕后请填写办理意见并上传相关材料,如有疑问请与受理人员联系。",
    "望领导在百忙之中关注此事,给我们一个满意的答复,谢谢!祝您工作顺利,身体健康,阖家幸福。",
    "来电人要求尽快处理并给予书面答复,请承办单位注意保护来电人的个人信息,不得泄露。",
)
_NAMES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英"


_PLACES = "东西南北安宁和平建设长江文昌中山金华明德永泰兴隆福寿康乐荣光新城青云白塔红旗石桥花溪柳林"
_ESTATES = ("花园", "家园", "小区", "公馆", "新村", "佳苑", "名城", "家属院")
_SERVICES = ("物业服务", "房地产开发", "供热", "公共交通", "装饰工程", "电子商务", "人力资源", "教育咨询")
_PEOPLE = 150
"""Who fills in a form with details: each person about three times, always with the same address."""


@dataclass(frozen=True)
class Planting:
    """What is planted around texts.

    Attributes:
        forms: how many; each is on an equal share of the rows, those of the letter included.
        letters: how many copies of the letter there are.
        short: how many of the texts are cut to 4 to 11 characters.
        are_personal: whether senders add to the letter: a third of them some words, a third a sentence.
        longest: the texts are cut to so many characters at most.
        are_detailed: whether the forms have the name, telephone number and address of the sender and the
            name of a company as well.
        letter_length: the letter is cut to so many characters.
        equal: how many more copies of the letter are not edited.
    """

    name: str
    forms: int
    letters: int
    short: int = 0
    are_personal: bool = False
    longest: int = 3_000
    are_detailed: bool = False
    letter_length: int = 500
    equal: int = 0


PLANTINGS = (
    Planting("no form", 0, 120),
    Planting("one form", 1, 120),
    Planting("two forms", 2, 120),
    Planting("three forms", 3, 120),
    Planting("ten forms", 10, 120),
    Planting("one form, letter 3 %", 1, 10),
    Planting("one form, letter 40 %", 1, 200),
    Planting("one form, letter 60 %", 1, 450),
    Planting("three forms, letter 3 %", 3, 10),
    Planting("three forms, letter 40 %", 3, 200),
    Planting("three forms, letter 60 %", 3, 450),
    Planting("ten forms, letter 60 %", 10, 450),
    Planting("one form, 60 short texts", 1, 120, short=60),
    Planting("one form, texts up to 100", 1, 120, longest=100),
    Planting("one form, texts up to 50", 1, 120, longest=50),
    Planting("personal letters", 0, 120, are_personal=True),
    Planting("one form, personal letters", 1, 120, are_personal=True),
    Planting("personal and equal letters", 0, 60, are_personal=True, letter_length=120, equal=200),
    Planting("no form, letter of 60", 0, 120, longest=100, letter_length=60),
    Planting("no form, letter of 30", 0, 120, longest=50, letter_length=30),
    Planting("one form, letter of 60", 1, 120, longest=100, letter_length=60),
    Planting("one form, letter of 30", 1, 120, longest=50, letter_length=30),
    Planting("details", 1, 120, are_detailed=True),
    Planting("details, texts up to 100", 1, 120, longest=100, are_detailed=True),
    Planting("details, texts up to 50", 1, 120, longest=50, are_detailed=True),
    Planting("details, letter of 60", 1, 120, longest=100, are_detailed=True, letter_length=60),
    Planting("details, letter of 30", 1, 120, longest=50, are_detailed=True, letter_length=30),
    Planting("three forms, details", 3, 120, longest=50, are_detailed=True),
)


def make_form(seed: int) -> Form:
    """Write a form: labelled fields, some of which vary, an opening and a closing."""
    rng = random.Random(seed)
    labels = rng.sample(_LABELS, 6)
    opening, closing = rng.choice(_OPENINGS), rng.choice(_CLOSINGS)
    brackets = rng.choice(("【{}】", "{}:", "[{}] ", "「{}」"))
    station = rng.choice(("市级平台", "区级中心", "街道窗口"))

    def fill(text: str, own: random.Random) -> str:
        fields = [
            f"hx{own.randrange(10**10)}",
            f"20{own.randrange(18, 25)}-{own.randrange(1, 13)}-{own.randrange(1, 29)} {own.randrange(24)}:30",
            f"1{own.randrange(10**10)}",
            "".join(own.sample(_NAMES, own.choice((2, 3)))),
            station,
        ]
        head = "".join(
            f"{brackets.format(label)}{field} " for label, field in zip(labels, fields, strict=False)
        )
        return f"{head}{opening}{brackets.format(labels[-1])}{text} {closing}"

    return fill


def make_detailed_form(seed: int) -> Form:
    """Write a form that has details of the sender between its labels."""
    rng = random.Random(seed)
    brackets = rng.choice(("【{}】", "{}:", "[{}] ", "「{}」"))
    opening, closing = rng.choice(_OPENINGS), rng.choice(_CLOSINGS)
    labels = ["来电人", "联系电话", "家庭住址", "来电时间", "被反映单位"]
    rng.shuffle(labels)

    def fill(text: str, own: random.Random) -> str:
        person = random.Random(own.randrange(_PEOPLE))
        address = (
            f"{_place(person)}区{_place(person)}街道{_place(person)}路{person.randrange(1, 300)}号"
            f"{_place(person)}{person.choice(_ESTATES)}{person.randrange(1, 40)}号楼"
        )
        fields = {
            "来电人": "".join(person.sample(_NAMES, person.choice((2, 3)))),
            "联系电话": f"1{person.randrange(10**10)}",
            "家庭住址": address,
            "来电时间": f"20{own.randrange(18, 25)}年{own.randrange(1, 13)}月{own.randrange(1, 29)}日",
            "被反映单位": f"{_place(own)}{own.choice(_SERVICES)}有限公司",
        }
        head = "".join(brackets.format(label) + fields[label] for label in labels)
        return f"{head}{opening}{brackets.format('诉求内容')}{text}{closing}"

    return fill


def _place(own: random.Random) -> str:
    return "".join(own.sample(_PLACES, 2))


def plant(planting: Planting, texts: Sequence[str], letter: str, characters: Sequence[str]) -> Material:
    """Put unlike texts and lightly edited copies of a letter into forms."""
    rng = random.Random(7)
    make = make_detailed_form if planting.are_detailed else make_form
    forms = [make(planting.forms * 100 + number) for number in range(planting.forms)]
    rows = [_section(text, rng.randrange(4, 12), rng) for text in texts[: planting.short]]
    rows += [_section(text, _length_up_to(planting.longest, rng), rng) for text in texts[planting.short :]]
    for number in range(planting.letters):
        copy = edited(
            letter[: planting.letter_length],
            rng.randrange(1, min(MOST_EDITS, planting.letter_length // 10) + 1),
            characters,
            rng,
        )
        if planting.are_personal and number % 3:
            copy += _section(rng.choice(texts), (7, 40)[number % 3 - 1], rng)
        rows.append(copy)
    rows += [letter[: planting.letter_length]] * planting.equal
    if forms:
        rows = [forms[number % len(forms)](row, rng) for number, row in enumerate(rows)]
    wanted = set(combinations(range(len(texts), len(rows)), 2))
    return Material(planting.name, [{"text": row} for row in rows], wanted, {})


def _length_up_to(longest: int, rng: random.Random) -> int:
    """Draw a length; short ones are as frequent as long ones."""
    return int(_SHORTEST * math.exp(math.log(longest / _SHORTEST) * rng.random()))


def _section(text: str, length: int, rng: random.Random) -> str:
    """Return some consecutive characters of a text."""
    start = rng.randrange(max(1, len(text) - length))
    return text[start : start + length]


def unlike_petitions(data: Path | None, similar: Callable[[list[str]], set[Pair]]) -> tuple[list[str], str]:
    """Return (300 petitions of which no two are duplicates, another one).

    Args:
        data: folder with petitions-gold; without it petitions are made up.
        similar: returns the pairs of texts that a rule calls duplicates.
    """
    if data is None:
        raw, labelled = [p.content for p in generate_petitions(2 * TEXTS, duplicate_share=0).petitions], set()
    else:
        petitions = read_petitions(data)
        labelled = {key for pair in read_gold_pairs(data) for key in pair}
        raw = [str(row["content"]) for row in petitions if str(row["id"]) not in labelled]
    texts = [text for text in normalise_batch(raw) if _SHORTEST <= len(text) <= _LONGEST]
    alike = {row for pair in similar(texts) for row in pair}
    kept = [text for number, text in enumerate(texts) if number not in alike]
    random.Random(3).shuffle(kept)
    letter = next(text for text in kept if _LETTER_LENGTHS[0] <= len(text) <= _LETTER_LENGTHS[1])
    return [text for text in kept if text != letter][:TEXTS], letter
