"""jieba's tokens are exactly jieba's, whoever makes them; the other segmenters do what their names say."""

import io
import logging
import random
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from db_dedup.flow.text import _jieba, _rust_jieba
from db_dedup.flow.text._jieba import PythonJieba, SearchWords, import_jieba, precise_jieba
from db_dedup.flow.text._rust_jieba import RustJieba
from db_dedup.flow.text.segment import SEGMENTERS, make_segmenter

jieba = import_jieba()

HARD_CASES = [
    "",
    "4.2.3",
    "gb50096-2011",
    "c++ c# at&t c++11 a+b a#b C++",
    "a_b a__b _a b_ a-_b",
    "50% 50.5% 2.5%% 5.% 1-2.5%x 50%-60%",
    "&nbsp;",
    "a市b3区 A市B3区",
    "3-5年 2013-05-06 1..2 1.2x% ..",
    "卡拉ok-b t恤a江南style",
    "有人%有人 有人a有人 有人c++有人",
    "1.٣ ２０２４年",
    "鿕鿖一\u9fffㄅ\u3400中\U00020000国\uf900人\U0002f800民\U00030000",
    "有\u9fd5 我\u9fd4\u9fd5 \u9fd5有",
    "か゛カタカナ한국어👨‍👩‍👧é\u0301",
    "\ud800中国\udfff",
    "中\0国\r",
    "\r",
    "繁體字與簡體字",
    # Two ways to cut come out equal, or differ by less than a millionth.
    "赞赞赞赞赞",
    "奇迹笨小孩好景常在后告片",
    "谢谢谢谢谢那段",
    "希望你越来越火,越来越火,越来越火,最后成为歌坛的巨星,天王等等等......哈哈哈......最后希望",
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """jieba as its users load it."""
    jieba.setLogLevel(logging.CRITICAL)
    tokenizer = jieba.Tokenizer()
    tokenizer.tmp_dir = tmp_path_factory.mktemp("jieba")
    tokenizer.initialize()
    return tokenizer


@pytest.fixture(scope="module", autouse=True)
def parse_dictionary_once(reference: Any) -> Iterator[None]:  # noqa: ARG001 - it is to load by itself
    """Many tests need a dictionary of their own; each gets a copy, because parsing takes a second."""
    with (Path(jieba.__file__).parent / "dict.txt").open("rb") as file:
        frequencies, total = jieba.Tokenizer.gen_pfdict(file)

    def copy(file: IO[bytes]) -> tuple[dict[str, int], int]:
        file.close()
        return dict(frequencies), total

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jieba.Tokenizer, "gen_pfdict", staticmethod(copy))
        yield


@pytest.fixture(scope="module")
def rust() -> RustJieba:
    return RustJieba(jieba.finalseg)


@pytest.fixture(scope="module")
def slow() -> PythonJieba:
    return PythonJieba()


def with_line_ends(cut: Callable[[str], list[str]], texts: Sequence[str]) -> list[str]:
    return [token for text in texts for token in [*cut(text), "\n"]]


@cache
def dictionary() -> list[tuple[str, int]]:
    lines = (Path(jieba.__file__).parent / "dict.txt").read_text("utf-8").splitlines()
    return [(word, int(frequency)) for word, frequency, _ in map(str.split, lines)]


@cache
def kinds_of_words() -> tuple[list[str], list[str], list[str], list[str]]:
    words = [word for word, _ in dictionary()]
    return (
        words,
        [word for word, frequency in dictionary() if frequency > 1000],
        [word for word in words if len(word) == 1],
        [word for word in words if re.search("[a-zA-Z0-9]", word)],
    )


def sentences(seed: int, count: int, own_words: Sequence[str] = ()) -> list[str]:
    chance = random.Random(seed)
    words, frequent, single, ascii_words = kinds_of_words()
    makers: list[Callable[[], str]] = [
        lambda: chance.choice(words),
        lambda: chance.choice(frequent),
        lambda: chance.choice(single),
        lambda: chance.choice(single) * chance.randrange(2, 9),
        lambda: chance.choice(ascii_words),
        lambda: str(chance.randrange(10 ** chance.randrange(1, 6))),
        lambda: "".join(chance.choices("abcxyzOK", k=chance.randrange(1, 4))),
        lambda: chance.choice("-+#&_%.") * chance.randrange(1, 3),
        lambda: chance.choice("，。！？、：“”（）*/@~ "),
        lambda: chance.choice(own_words or frequent),
    ]
    texts = []
    for _ in range(count):
        # Few makers at a time, so that runs of singles and of signs get long enough to matter.
        some = chance.sample(makers, chance.randrange(1, len(makers)))
        texts.append("".join(chance.choice(some)() for _ in range(chance.randrange(1, 16))))
    return texts


@pytest.mark.parametrize("text", HARD_CASES)
def test_hard_case_equals_jieba(text: str, reference: Any, rust: RustJieba, slow: PythonJieba) -> None:
    expected = [*reference.cut(text), "\n"]
    assert rust.cut([text]) == expected
    assert slow.cut([text]) == expected


def test_generated_sentences_equal_jieba(reference: Any, rust: RustJieba) -> None:
    texts = sentences(seed=20, count=10_000)
    assert rust.cut(texts) == with_line_ends(reference.lcut, texts)


def test_repeated_words_in_context_equal_jieba(reference: Any, rust: RustJieba) -> None:
    # Equal sums: the last bit decides, and what follows in the same sentence decides the last bit.
    chance = random.Random(21)
    words = [word for word, frequency in dictionary() if frequency > 300 and len(word) < 3]
    doubled = [word for word, _ in dictionary() if len(word) == 2 and word[0] == word[1]]
    texts = []
    for _ in range(2_000):
        repeated = chance.choice(doubled)[0] * chance.randrange(5, 10)
        sentence_end = chance.choice(["", "\u9fd6", "\u3400", "\U00020000"])
        texts.append(repeated + sentence_end + "".join(chance.choices(words, k=20)))
    assert rust.cut(texts) == with_line_ends(reference.lcut, texts)


def any_text() -> st.SearchStrategy[str]:
    han = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5)
    around_han = st.characters(min_codepoint=0x9FC0, max_codepoint=0x9FFF)
    half_width = st.sampled_from("-+#&_%.-_.%09aZ")
    frequent = st.sampled_from(
        "的一是了我不在人有这上们来到时大地为子中你说生国年着就那和要她出也得里后自以会"
    )
    characters = st.one_of(frequent, half_width, han, around_han, st.characters(exclude_characters="\n"))
    return st.text(characters, max_size=40)


@settings(max_examples=400)
@given(texts=st.lists(any_text(), max_size=6))
@example(texts=["\r", "a\r", "b"])
@example(texts=["", "", ""])
def test_any_text_equals_jieba(texts: list[str], reference: Any, rust: RustJieba) -> None:
    assert rust.cut(texts) == with_line_ends(reference.lcut, texts)


@settings(max_examples=200)
@given(texts=st.lists(any_text(), max_size=6))
@example(texts=["\r\n", " a\r", "  ", "\u3000"])
def test_any_text_equals_jieba_without_rjieba(texts: list[str], reference: Any, slow: PythonJieba) -> None:
    assert slow.cut(texts) == with_line_ends(reference.lcut, texts)


@pytest.mark.parametrize("lines", [[], ["gdp"], ["北京 0"]])
def test_words_that_a_host_deletes_change_nothing(lines: list[str], force_split: set[str]) -> None:
    cut = PythonJieba(lines).cut
    texts = ["他来到了网易杭研大厦", *sentences(seed=26, count=200)]
    expected = cut(texts)
    assert "杭研" in expected
    force_split.update(token for token in expected if len(token) > 1)
    assert cut(texts) == expected


def test_long_texts_equal_jieba(reference: Any, rust: RustJieba) -> None:
    long_run = "".join(random.Random(22).choices([w for w, _ in dictionary() if len(w) == 1], k=1_500))
    texts = [long_run, "-" * 5_000, "a.1" * 5_000, "中" * 3_000, "国", long_run[::-1]]
    assert rust.cut(texts) == with_line_ends(reference.lcut, texts)


def test_dictionary_has_no_word_of_plain_letters_and_digits() -> None:
    # `_rust_jieba` takes any such token for letters and digits that rjieba joined.
    assert [word for word, _ in dictionary() if word.isascii() and word.isalnum()] == []


def test_search_mode_equals_jieba(reference: Any) -> None:
    texts = [*HARD_CASES, "小明硕士毕业于中国科学院计算所", *sentences(seed=23, count=1_000)]
    assert make_segmenter("jieba-search").cut_batch(texts) == with_line_ends(reference.lcut_for_search, texts)


def test_search_mode_forgets_and_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jieba, "_MEMO_ENTRIES", 2)
    words = SearchWords({"中国", "国人"}.__contains__)
    for text in ("中国人", "甲乙", "丙丁", "中国人"):
        assert words[text] == (("中国", "国人", text) if text == "中国人" else (text,))
        assert len(words) <= 2


def test_search_mode_does_not_keep_long_tokens() -> None:
    words = SearchWords({"12"}.__contains__)
    for length in (64, 65, 1_000):
        assert words["12" + "0" * (length - 2)] == ("12", "12" + "0" * (length - 2))
    assert [len(token) for token in words] == [64]


def test_full_mode_gives_every_word() -> None:
    tokens = make_segmenter("jieba-full").cut_batch(["我来到北京清华大学", "", "c++ 好"])
    expected = ["我", "来到", "北京", "清华", "清华大学", "华大", "大学", "\n", "\n", "c++", " ", "好", "\n"]
    assert tokens == expected


@pytest.mark.parametrize("name", SEGMENTERS)
def test_every_text_ends_in_one_newline(name: str) -> None:
    segmenter = make_segmenter(name)
    texts = ["", "本人反映 5 号楼漏水", " ", "hello world", "😀"] * 3
    tokens = segmenter.cut_batch(texts)
    assert segmenter.name == name
    assert tokens.count("\n") == len(texts)
    assert tokens == with_line_ends(lambda text: segmenter.cut_batch([text])[:-1], texts)
    assert "" not in tokens
    assert segmenter.cut_batch([]) == []


def test_newline_in_a_text_is_refused() -> None:
    with pytest.raises(ValueError, match="newline"):
        make_segmenter("chars:2").cut_batch(["one", "two\nthree"])


def test_batches_longer_than_a_call(rust: RustJieba, slow: PythonJieba) -> None:
    texts = ["小区电梯坏了3.5天无人修" * n for n in range(60)]
    assert sum(map(len, texts)) > 20_000
    assert rust.cut(texts) == slow.cut(texts)


def test_threads_may_share_a_segmenter(slow: PythonJieba) -> None:
    segmenter = make_segmenter("jieba")
    batches = [sentences(seed, count=150) for seed in range(8)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(segmenter.cut_batch, batches)) == [slow.cut(batch) for batch in batches]


def test_without_rjieba_the_tokens_are_the_same(
    monkeypatch: pytest.MonkeyPatch, rust: RustJieba, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "rjieba", None)
    cut, is_word = precise_jieba()
    texts = [*HARD_CASES, *sentences(seed=24, count=300)]
    assert cut(texts) == rust.cut(texts)
    assert is_word("北京")
    assert not is_word("清华大")
    assert "slowly" in caplog.text


def test_another_rjieba_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_rust_jieba, "_DEFAULT_SURPLUS", 0)
    cut, _ = precise_jieba()
    assert cut(["赞赞赞赞赞"]) == ["赞赞", "赞赞赞", "\n"]
    assert "does not look words up exactly" in caplog.text


def test_loading_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    PythonJieba(["信访件"]).cut(["信访件"])
    assert capfd.readouterr() == ("", "")


USER_LINES = [
    ["信访件 3 n", "幸福里小区", "电梯维保 5", "12345热线", "来到北 100000", "大学 1 n", "", "  云 计算 3  "],
    ["北京 5000000", "京清 9000000 x", "张", "\ufeff网格员 20", "𠀀字 5"],
    ["gdp", "5g 10", "a 3", "c++20 7", "幸福gdp"],
    ["北京 0", "有人 0", "杭研 0", "的 0", "网易 7 n", "清 0"],
]


@pytest.mark.parametrize("lines", USER_LINES)
@pytest.mark.parametrize("name", ["jieba", "jieba-search", "jieba-full"])
def test_user_words_equal_jieba(name: str, lines: list[str], reference: Any, force_split: set[str]) -> None:
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total, tokenizer.initialized = dict(reference.FREQ), reference.total, True
    tokenizer.load_userdict(io.BytesIO("\n".join(lines).lstrip("\ufeff").replace("\ufeff", "").encode()))
    own_words = [line.split()[0].lstrip("\ufeff") for line in lines if line]
    texts = ["他来到了网易杭研大厦", "有人来到北京清华大学", *sentences(25, 400, own_words)]
    cut = {
        "jieba": tokenizer.lcut,
        "jieba-search": tokenizer.lcut_for_search,
        "jieba-full": lambda text: [token for token in tokenizer.cut(text, cut_all=True) if token],
    }[name]
    expected = with_line_ends(cut, texts)
    force_split.clear()
    assert make_segmenter(name, lines).cut_batch(texts) == expected
    assert not force_split


@pytest.fixture
def force_split() -> Iterator[set[str]]:
    """jieba's process-wide set of words that are never one token; empty again afterwards."""
    words: set[str] = jieba.finalseg.Force_Split_Words
    yield words
    words.clear()


def test_fast_and_slow_paths_take_user_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PythonJieba, "cut", lambda *_: ["slow"])
    assert precise_jieba(["幸福里小区", "北京 7"])[0](["幸福里小区"]) == ["幸福里小区", "\n"]
    assert precise_jieba(["gdp"])[0](["gdp"]) == ["slow"]
    assert precise_jieba(["北京 0"])[0](["北京"]) == ["slow"]


def test_user_words_stay_with_their_segmenter() -> None:
    text = "幸福里小区的网格员"
    assert make_segmenter("jieba", ["幸福里小区的"]).cut_batch([text]) == ["幸福里小区的", "网格", "员", "\n"]
    assert "幸福里小区的" not in make_segmenter("jieba").cut_batch([text])
    assert "幸福里小区的" not in make_segmenter("jieba", ["网格员"]).cut_batch([text])
    assert not jieba.dt.initialized


@pytest.mark.parametrize("name", ["words", "chars:3"])
def test_user_words_need_a_dictionary(name: str) -> None:
    with pytest.raises(ValueError, match="takes no user words"):
        make_segmenter(name, ["信访件"])


def test_character_runs() -> None:
    assert make_segmenter("chars:3").cut_batch(["ab c 电梯", "ab", "", "a b c"]) == [
        *["abc", "bc电", "c电梯", "\n"],
        *["ab", "\n"],
        "\n",
        *["abc", "\n"],
    ]
    assert make_segmenter("chars:1").cut_batch(["电 梯"]) == ["电", "梯", "\n"]


def test_words() -> None:
    cut = make_segmenter("words").cut_batch
    assert cut(["the café's no. 5, a_b!"]) == ["the", "café", "s", "no", "5", "a_b", "\n"]
    # A vowel sign or a lone accent is part of its word.
    assert cut(["हिन्दी में", "q\u0301z \u0301 👍️"]) == ["हिन्दी", "में", "\n", "q\u0301z", "\n"]


@pytest.mark.parametrize("name", ["", "jeiba", "chars", "chars:0", "chars:9", "chars:03", "Words"])
def test_unknown_name_lists_the_good_ones(name: str) -> None:
    with pytest.raises(ValueError, match=r"there are: jieba, jieba-search, jieba-full, words, chars:1, "):
        make_segmenter(name)


def test_registered_segmenter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halves.py").write_text(
        textwrap.dedent(
            """
            class Halves:
                name = "halves"
                def __init__(self, user_words):
                    self.user_words = user_words
                def cut_batch(self, texts):
                    return [t for text in texts for t in (*text.split("/"), *self.user_words, "\\n")]
            """
        )
    )
    metadata = tmp_path / "halves-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: halves\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[db_dedup.segmenters]\nhalves = halves:Halves\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert make_segmenter("halves", ["w"]).cut_batch(["a/b", "c"]) == ["a", "b", "w", "\n", "c", "w", "\n"]
    with pytest.raises(ValueError, match="halves"):
        make_segmenter("quarters")
