"""The normaliser of posts: the forms of retweets and replies, and what only looks like one."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from db_dedup.config import watched_table
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.text.normalise import normalise_batch, normalise_posts
from db_dedup.flow.text.posts import clean_post
from db_dedup.records.fingerprints import RowFingerprint, StoredFingerprint
from db_dedup.records.forms import FORMS, form_of_pair
from tests.lengths import LONG, NOT_THE_SQUARE
from tests.thorough import quick_first

PIECES = [
    *(
        "@a",
        "@名字",
        "@",
        "rt",
        "RT ",
        "rt:",
        "mt ",
        "via ",
        "转发",
        "转",
        "转自",
        "回复",
        "转发微博",
        "repost",
    ),
    *(
        "//",
        "/",
        "||",
        ":",
        "：",
        " ",
        "\n",
        "(",
        ")",
        "“",
        '"',
        ".",
        "。",
        "·",
        "-",
        "_",
        "x",
        "hello",
        "你好",
    ),
    *("Retweeted by ", "Retweeted by A", "t.co/ab", "a@b.com", "#tag", ":)", ","),
]
posts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30)
PREFIXES = ["RT @name: ", "RT@name: ", "rt @a: RT @b: ", "//@名字:", "转发@名字:", "转自@a: "]
PREFIXES += ["回复@名字:", "转发微博//@a:"]
SUFFIXES = [
    " via @name",
    " (via @name)",
    "\nRetweeted by NAME",
    "\nRetweeted by A, B and C",
    " http://t.co/abc",
]

FORM_OF = [
    ("hello\nRetweeted by NAME", "hello", "official_retweet"),
    ("hello Retweeted by John Smith, B and 3 others", "hello", "official_retweet"),
    ("hello Retweeted by A\nRetweeted by B", "hello", "official_retweet"),
    ("RT @a: hello Retweeted by B", "hello", "official_retweet"),
    ("RT @name: hello", "hello", "unofficial_retweet"),
    ("RT@name hello", "hello", "unofficial_retweet"),
    ("RT @a: RT @b: rt@c：hello", "hello", "unofficial_retweet"),
    ("RT RT @a: hello", "hello", "unofficial_retweet"),
    ("MT @a hello", "hello", "unofficial_retweet"),
    ("RT: hello", "hello", "unofficial_retweet"),
    ("so true RT @a: hello", "so true hello", "unofficial_retweet"),
    ("hello via @name", "hello", "unofficial_retweet"),
    ("hello (via @name)", "hello", "unofficial_retweet"),
    ("“@name: hello", "hello", "unofficial_retweet"),
    ("转发@名字：你好", "你好", "unofficial_retweet"),
    ("转自 @名字 你好", "你好", "unofficial_retweet"),
    ("好//@甲:对//@乙：是", "好 对 是", "unofficial_retweet"),
    ("好/@甲:对", "好 对", "unofficial_retweet"),
    ("转发微博。//@甲:转发微博//@乙:你好", "你好", "unofficial_retweet"),
    ("轉發微博", "", "unofficial_retweet"),
    ("回复@名字:你好//@我:谢谢", "你好 谢谢", "unofficial_retweet"),
    ("回复@名字:你好", "你好", "reply"),
    ("@name hello", "hello", "reply"),
    ("hello @name, and @b", "hello , and", "none"),
    (".@name hello", ". hello", "none"),
    ("hello", "hello", "none"),
]

STAYS = [
    "write to info@example.com",
    "rt@example.com or via@example.com",
    "chk@preboard made@it",
    "meet @ 5, 5 @ 3",
    "rt is a channel, art rt-pcr start",
    "rt if you agree",
    "drive via berlin",
    "请转发给朋友",
    "请大家转发微博支持",
    "好转了 回复 转发",
    "请回复",
    "i was retweeted by obama",
    "see ftp://host/x and a//b",
    "w/@music",
    "#aapl #天台爱情# rocks",
]


@pytest.mark.parametrize(("post", "text", "form"), FORM_OF)
def test_forms(post: str, text: str, form: str) -> None:
    texts, forms = normalise_posts([post])
    assert (texts, [FORMS[number] for number in forms]) == ([text], [form])


@pytest.mark.parametrize("text", STAYS)
def test_what_looks_like_a_form_stays(text: str) -> None:
    assert normalise_posts([text]) == ([text], [0])


@pytest.mark.parametrize(
    "post",
    [
        "I was Retweeted by Obama",
        "Retweeted by my dog. It was fun",
        "Retweeted by people that I do not even know",
        "xRetweeted by A",
        "hello Retweeted by A\nand more",
    ],
)
def test_a_sentence_about_retweets_stays(post: str) -> None:
    assert normalise_posts([post]) == (normalise_batch([post]), [0])


@pytest.mark.parametrize(
    ("post", "text"),
    [
        ("look t.co/abc bit.ly/x-y end", "look end"),
        ("看t.cn/abc", "看t.cn/abc"),
        ("look http://t.co/abc", "look"),
        ("@united :) thanks", ":) thanks"),
        ("@united:thanks", "thanks"),
        ("@united.Thanks", ".thanks"),
        ("@a@b@c hi", "hi"),
        ("/@a/@b/@c hi", "/ hi"),
    ],
)
def test_links_and_mentions(post: str, text: str) -> None:
    assert normalise_batch([post], "tweet") == [text]


@given(posts)
@example("rt //@b:: hello")
@example("rt: 转发微博//@a:rt: 转发微博")
@settings(max_examples=500)
def test_cleaning_a_cleaned_post_changes_nothing(post: str) -> None:
    once, _ = clean_post(normalise_batch([post])[0])
    assert clean_post(once)[0] == once


# A colon or a slash after the colon of a form may belong to the form: "//@name:/@other:".
@given(posts.filter(lambda post: not re.match(r"\s*(?:[:：]{2}|[/／])", post)), st.sampled_from(PREFIXES))
@example(":x", "RT @name: ")
@example("转发微博", "//@名字:")
@example("//@a", "//@名字:")
@example("@回复@a", "RT @name: ")
@example("@a.转发·回复@b:", "rt @a: RT @b: ")
@example("@a.回复@b:", "回复@名字:")
@settings(max_examples=500)
def test_a_form_before_a_post_leaves_the_post(post: str, prefix: str) -> None:
    assert normalise_batch([prefix + post], "tweet") == normalise_batch([" " + post], "tweet")


@given(posts.filter(lambda post: not re.search(r"[a-z]\.?$|Retweeted by", post)), st.sampled_from(SUFFIXES))
@settings(max_examples=500)
def test_a_form_after_a_post_leaves_the_post(post: str, suffix: str) -> None:
    assert normalise_batch([post + suffix], "tweet") == normalise_batch([post], "tweet")


@given(st.lists(posts, max_size=6))
def test_no_post_changes_another(batch: list[str]) -> None:
    assert normalise_posts(batch) == (
        [normalise_posts([post])[0][0] for post in batch],
        [normalise_posts([post])[1][0] for post in batch],
    )


@NOT_THE_SQUARE
@pytest.mark.parametrize(
    "part",
    quick_first(
        [
            *(
                "@",
                "@a",
                "@a ",
                "rt ",
                "rt @a ",
                "rt@rt@",
                "//@a",
                "/@a",
                "/@_",
                "@中.中",
                '"@a',
                "(rt @a",
                "@a.b",
                "via ",
                "转发微博",
            ),
            *("rt: 转发微博//@a:", "rt //@b:: ", "回复@", "t.co/", "Retweeted by A ", "Retweeted by "),
        ]
    ),
)
def test_no_post_takes_the_square_of_its_length(part: str) -> None:
    (cleaned,), _ = normalise_posts([part * (LONG // len(part))])
    assert len(cleaned) <= LONG


def test_a_hashtag_is_a_word() -> None:
    table = {"columns": {"a": 1}, "preset": "tweet", "segmenter": "words"}
    rows = [["#traffic on the bridge #closed"], ["traffic on the bridge closed"]]
    done = Fingerprinter(watched_table("t", table).recipe).fingerprint(rows)
    assert done.fingerprints[0] == done.fingerprints[1]
    assert done.has_fingerprint.all()


def test_the_stronger_form_is_that_of_a_pair() -> None:
    assert form_of_pair(0, 2) == form_of_pair(2, 0) == "unofficial_retweet"
    assert form_of_pair(0, 0) == "none"
    assert form_of_pair(None, 3) is None


def test_a_stored_row_with_another_form_is_written_again() -> None:
    """Its digest stays the same, since the form is left out of the text that is compared."""
    stored = StoredFingerprint(1, None, 5, b"digest", 0)
    assert stored.is_of(RowFingerprint("1", None, 5, b"digest", 0))
    assert not stored.is_of(RowFingerprint("1", None, 5, b"digest", 2))
