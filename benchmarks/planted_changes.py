"""Recall by kind of change and by length: what is found of texts that were changed on purpose.

Each text is cut from a petition at the beginning of a sentence, to a length of its band. The texts of all
bands have little in common: two parts of one petition are not both among them. A second row is made of each
text by one change. Rows of different texts are no duplicates; pairs of them are counted as wrong.
"""

import random
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from opencc import OpenCC

from benchmarks.datasets import read_petitions
from benchmarks.materials import Material, edited, unlike_texts
from benchmarks.peer_packages import PEERS
from benchmarks.scanning import fill, scan_copy, watch
from benchmarks.scores import Pair
from db_dedup.sample import generate_petitions

BANDS: Final = ((12, 30), (30, 60), (60, 150), (150, 400), (400, 1500))
"""Characters: from, up to."""
_QUOTED: Final = "quoted in a longer text"
_PEERS: Final = ("datasketch MinHashLSH", "rensa RMinHashLSH")
_SENTENCE = re.compile(r"[^。！？!?；;\n]+[。！？!?；;\n]?")
_LOOK_ALIKES: Final = (
    "己已",
    "未末",
    "日曰",
    "人入",
    "土士",
    "天夫",
    "干千",
    "大太",
    "问间",
    "候侯",
    "毫亳",
    "拔拨",
)
_HOMOPHONES: Final = (
    "的地得",
    "在再",
    "做作",
    "他她它",
    "那哪",
    "像向象",
    "有又",
    "事是",
    "应因",
    "以已",
    "和合",
    "到道",
)
_SURNAMES: Final = "赵钱孙李周吴郑王冯陈"
_GIVEN: Final = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超霞平刚"

Change = Callable[[str, random.Random], str]


@dataclass(frozen=True)
class Sizes:
    """How many texts of each band are changed in each way."""

    texts: int = 60


SMALL = Sizes(texts=6)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print a table for db-dedup at the default preset, and one for each peer at its own recommendation."""
    bands = _unlike_bands(data, sizes.texts)
    print(
        "share of the changed texts that are found; "
        + ", ".join(f"{low} to {high - 1} characters: {len(bands[low, high])} texts" for low, high in BANDS)
    )
    table = _planted(bands)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.db"
        fill(source, table.material.rows)
        for preset in ("balanced", "strict"):
            found = scan_copy(source, watch({"text": 1}, preset=preset))
            _print_table(f"db-dedup, preset {preset}", table, found)
    for peer in PEERS:
        if peer.name not in _PEERS:
            continue
        if why := peer.missing():
            print(f"NOT MEASURED: {peer.name}: {why}")
            continue
        for setting in (peer.recommended, *(s for s in peer.tried if str(s) == "3-grams, 0.35")):
            _print_table(f"{peer.name}, {setting}", table, peer.find(table.material, setting))


@dataclass(frozen=True)
class Planted:
    """Texts and their changed copies.

    Attributes:
        pairs: (kind of change, band) -> the pairs of a text and its changed copy.
        origin: the number of the original of each row; -1 for a text with a part of another one in it, whose
            pairs are never wrong.
    """

    material: Material
    pairs: dict[tuple[str, tuple[int, int]], list[Pair]]
    origin: list[int]


def _planted(bands: dict[tuple[int, int], list[str]]) -> Planted:
    rng = random.Random(7)
    rows: list[str] = []
    origin: list[int] = []
    pairs: dict[tuple[str, tuple[int, int]], list[Pair]] = {}
    characters = [c for texts in bands.values() for text in texts for c in text if c.isalpha()]
    others = [text for texts in bands.values() for text in texts]
    for band, texts in bands.items():
        for text in texts:
            first = len(rows)
            rows.append(text)
            origin.append(first)
            for name, change in _changes(characters, others).items():
                changed = change(text, rng)
                if changed == text:
                    continue
                pairs.setdefault((name, band), []).append((first, len(rows)))
                rows.append(changed)
                origin.append(-1 if name == _QUOTED else first)
    wanted = {pair for found in pairs.values() for pair in found}
    material = Material(f"planted: {len(rows):,} texts", [{"text": text} for text in rows], wanted, {})
    return Planted(material, pairs, origin)


def _print_table(name: str, planted: Planted, found: set[Pair]) -> None:
    origin = planted.origin
    wrong = sum(-1 != origin[a] != origin[b] != -1 for a, b in found)
    count = sum(each != -1 for each in origin)
    print(f"\n{name}: {wrong:,} wrong pairs of {count * (count - 1) // 2:,} possible ones")
    print(f"{'change':<26}" + "".join(f" {f'{low}-{high - 1}':>9}" for low, high in BANDS))
    names = list(dict.fromkeys(name for name, _ in planted.pairs))
    for change in names:
        cells = (_cell(planted.pairs.get((change, band), []), found) for band in BANDS)
        print(f"{change:<26}" + "".join(f" {cell:>9}" for cell in cells), flush=True)


def _cell(pairs: Sequence[Pair], found: set[Pair]) -> str:
    return f"{sum(pair in found for pair in pairs) / len(pairs):.2f}" if pairs else "-"


def _unlike_bands(data: Path | None, count: int) -> dict[tuple[int, int], list[str]]:
    """Return texts of each band that have little in common, with those of the other bands, too."""
    bands: dict[tuple[int, int], list[str]] = {}
    earlier: list[str] = []
    for band in BANDS:
        unlike = unlike_texts([*earlier, *_texts(data, band, count)], len(earlier) + count)
        bands[band] = unlike[len(earlier) :]
        earlier = unlike
    return bands


def _texts(data: Path | None, band: tuple[int, int], count: int) -> list[str]:
    """Return texts of this length, each of a petition of its own."""
    rng = random.Random(band[0])
    source = (
        [str(row["content"]) for row in read_petitions(data)]
        if data
        else [petition.content for petition in generate_petitions(20 * count, duplicate_share=0).petitions]
    )
    rng.shuffle(source)
    cut = [text for each in source if (text := _cut(each, band, rng))]
    return cut[: 6 * count]


def _cut(text: str, band: tuple[int, int], rng: random.Random) -> str:
    """Return whole sentences of the text whose length is in the band; "" if there are none."""
    sentences = _SENTENCE.findall(re.sub(r"\s+", "", text))
    starts = list(range(len(sentences)))
    rng.shuffle(starts)
    for start in starts:
        found = ""
        for sentence in sentences[start:]:
            found += str(sentence)
            if band[0] <= len(found) < band[1]:
                return found
            if len(found) >= band[1]:
                break
    return ""


def _changes(characters: Sequence[str], others: Sequence[str]) -> dict[str, Change]:
    edits: dict[str, Change] = {
        f"{n} edit{'s' * (n > 1)}": partial(_edit, count=n, characters=characters) for n in (1, 2, 3, 5, 10)
    }
    return {
        **edits,
        "sentences moved": _move_sentences,
        "first half": lambda text, _: text[: len(text) // 2],
        _QUOTED: partial(_quote, others=others),
        "a sentence added": lambda text, _: f"{text}请有关部门尽快核实处理并给予书面答复。",
        "signed by another": _sign,
        "other digits": _change_digits,
        "look-alike characters": partial(_swap, sets=_LOOK_ALIKES),
        "homophones": partial(_swap, sets=_HOMOPHONES),
        "traditional characters": _traditional,
    }


def _edit(text: str, rng: random.Random, count: int, characters: Sequence[str]) -> str:
    return edited(text, count, characters, rng)


def _move_sentences(text: str, rng: random.Random) -> str:
    sentences = _SENTENCE.findall(text)
    rng.shuffle(sentences)
    return "".join(sentences)


def _quote(text: str, rng: random.Random, others: Sequence[str]) -> str:
    """Return the text inside another text of half its length or more."""
    other = rng.choice([each for each in others if len(each) >= len(text) // 2])[: 2 * len(text)]
    middle = len(other) // 2
    return other[:middle] + text + other[middle:]


def _sign(text: str, rng: random.Random) -> str:
    name = rng.choice(_SURNAMES) + "".join(rng.sample(_GIVEN, 2))
    return f"{text}反映人：{name}，电话：1{rng.randrange(10**9, 10**10)}。"


def _change_digits(text: str, rng: random.Random) -> str:
    return re.sub(r"\d", lambda _: str(rng.randrange(10)), text)


def _swap(text: str, rng: random.Random, sets: Sequence[str]) -> str:
    """Return the text with every twentieth character or more replaced by one of its set."""
    partners = {c: each.replace(c, "") for each in sets for c in each}
    places = [i for i, c in enumerate(text) if c in partners]
    chosen = set(rng.sample(places, min(len(places), 1 + len(text) // 20)))
    return "".join(rng.choice(partners[c]) if i in chosen else c for i, c in enumerate(text))


def _traditional(text: str, _: random.Random) -> str:
    converted: str = OpenCC("s2t").convert(text)
    return converted
