"""The normaliser of posts: leave out who passed them on, whom they answer and whom they mention (P2).

The paper compares official retweets ("Retweeted by NAME" at the end) as strings, and removes unofficial ones
("RT @name:", "RT@name", one inside another) and each @name by regular expressions, in order, until none
matches. Here a post of either sort becomes the text that was passed on, so that it is an exact duplicate of
it; which form it had is kept as a number.

What looks like a form and is none stays: addresses (a@b.com), an @ inside a word, RT and 转发 as words of a
sentence, // in a link. Each expression takes time in proportion to the text: no part of one can match what
the next part matches, and where it begins again it begins with another character.
"""

import re
from typing import Final

from db_dedup.records.forms import NONE, REPLY, UNOFFICIAL

# A name of Twitter or Weibo; several that follow each other without a blank are one, or else each round would
# leave out one of them. A full stop may be in a name only where a colon says that the name goes on so far:
# "@united.Thanks" is a name and a word. A name also ends before a full stop and a reply: "@a.回复@b:".
_PART: Final = r"[\w\-·]++"
_DOTTED: Final = rf"@{_PART}(?:\.(?!回复 ?@){_PART})*+"
# No post has fifty names in one chain. Where a colon must follow, a chain of very many names would otherwise
# be read to its end from each of them.
_CHAIN: Final = "{0,50}+"
_DOTTED_CHAIN: Final = rf"{_DOTTED}(?:/?{_DOTTED}){_CHAIN}(?=:)"
_NAME: Final = rf"(?:{_DOTTED_CHAIN}|@{_PART}(?:/?@{_PART})*+)"
_NAME_IN_FRONT: Final = rf"(?:{_DOTTED_CHAIN}|@{_PART}(?:/?@{_PART}){_CHAIN})"
# After a blank not the eyes of ":D". After a mention they may follow without one: "@name:)".
_COLON: Final = r"(?::| :(?=[ \n]|[^\x00-\x7f]|$))?"
_COLON_OF_MENTION: Final = r"(?::(?![()])| :(?=[ \n]|[^\x00-\x7f]|$))?"
# A letter or digit before an @, or before a word such as RT, makes it a part of an address or of a word.
_EDGE: Final = r"(?<![a-z0-9_])"
_NO_ADDRESS: Final = rf"(?!(?:rt|mt|via)@{_PART}\.[a-z])"
_AT_START: Final = r"(?:^|(?<=\n))"

_RETWEET = re.compile(
    rf"\( ?(?:via|rt|转自|转发) ?:? ?{_NAME} ?\)"
    rf"|{_EDGE}{_NO_ADDRESS}(?:(?:rt|mt) ?:? ?){{1,3}}[\"“]? ?{_NAME}{_COLON}"
    rf"|{_EDGE}{_NO_ADDRESS}via ?:? ?{_NAME}{_COLON}"
    rf"|(?<!\w)(?:转发|转自|转) ?:? ?{_NAME}{_COLON}"
    rf"|(?<![a-z0-9])[\"“] ?{_NAME}(?= ?:){_COLON}"
    rf"|(?:(?<!http:)(?<!https:)(?<!ftp:)(?<!/)//|\|\|) ?{_NAME}{_COLON}"
    rf"|(?<![a-z0-9:/])/{_NAME_IN_FRONT}(?= ?:){_COLON}"
)
_REPLY = re.compile(rf"(?<![\w\-·@])回复 ?{_NAME}{_COLON}|^{_NAME}{_COLON_OF_MENTION}")
_MENTION = re.compile(rf"{_EDGE}(?<![a-z0-9]/){_NAME}{_COLON_OF_MENTION}")
# What a client writes where the user writes nothing: only where it is a whole comment.
_DEFAULT_COMMENT = re.compile(rf"{_AT_START}(?:转发此?微博|repost(?: weibo)?)(?: ?[。.])?(?= ?(?:\n|$))")
_BARE_RT = re.compile(rf"{_AT_START}(?:(?:rt|mt) ?: ?)+")
_SHORT_LINK = re.compile(
    r"(?<![\w.@/\-])(?:t\.co|t\.cn|bit\.ly|goo\.gl|ow\.ly|is\.gd|j\.mp|tl\.gd|fb\.me|dlvr\.it|buff\.ly|url\.cn"
    r"|dwz\.cn|tinyurl\.com|youtu\.be)/[a-z0-9_\-]+"
)
# A newline marks where a form was, so that a comment ends there.
_MARK: Final = "\n"
_STEPS: Final = (
    (NONE, _SHORT_LINK, " "),
    (UNOFFICIAL, _RETWEET, _MARK),
    (UNOFFICIAL, _DEFAULT_COMMENT, _MARK),
    (UNOFFICIAL, _BARE_RT, _MARK),
    (REPLY, _REPLY, _MARK),
    (NONE, _MENTION, " "),
)
"""(the form that an expression shows, the expression, its replacement), in their order."""

_RETWEETED_BY: Final = "Retweeted by "
_BETWEEN_NAMES = re.compile(r"[,，、&]|\band\b")
_ENDS_A_SENTENCE = re.compile(r"[.!?;:。！？；：…](?:\s|$)|[。！？；：…]")
_LONGEST_NAMES: Final = 300
_WORDS_OF_A_NAME: Final = 4
_LONGEST_WORD_BEFORE: Final = 12
_MAKE_IT_A_SENTENCE: Final = frozenset(
    (
        "am",
        "are",
        "be",
        "been",
        "being",
        "get",
        "gets",
        "getting",
        "got",
        "had",
        "has",
        "have",
        "i'm",
        "is",
        "was",
        "were",
    )
)


def may_have_form(text: str) -> bool:
    """Return whether a folded text can have something to leave out; False for most texts, quickly."""
    return any(sign in text for sign in ("@", "/", "转发", "repost")) or text.lstrip()[:2] in ("rt", "mt")


def strip_official(text: str) -> tuple[str, bool]:
    """Return (a post as it was before official retweets, whether it was one).

    Official retweets end in "Retweeted by NAME", with one name or several, and once for each retweet. The
    capital letter is part of the form.

    Args:
        text: as it was written, before its case is folded.
    """
    end = len(text)
    while (place := text.rfind(_RETWEETED_BY, 0, end)) >= 0:
        names = text[place + len(_RETWEETED_BY) : min(end, place + _LONGEST_NAMES)]
        if end - place > _LONGEST_NAMES or not _are_names(names) or _goes_on(text, place):
            break
        end = place
    return (text, False) if end == len(text) else (text[:end], True)


def _are_names(text: str) -> bool:
    text = text.strip()
    if "\n" in text or _ENDS_A_SENTENCE.search(text):
        return False
    words = [len(part.split()) for part in _BETWEEN_NAMES.split(text)]
    return words[0] > 0 and max(words) <= _WORDS_OF_A_NAME


def _goes_on(text: str, place: int) -> bool:
    """Return whether what is before this place makes one sentence or one word with what is at it."""
    before = text[max(0, place - _LONGEST_WORD_BEFORE) : place]
    if before[-1:].isalnum():
        return True
    words = before.rpartition("\n")[2].split()
    return bool(words) and words[-1].casefold().replace("’", "'") in _MAKE_IT_A_SENTENCE


def clean_post(text: str) -> tuple[str, int]:
    """Return (a post without the forms of retweets and replies and without names, its form).

    Cleaning a cleaned post changes nothing.

    Args:
        text: one line, folded, traditional characters simplified, links left out.

    Returns:
        The form is a number of `records.forms`; official retweets are not looked for here.
    """
    form, before = NONE, None
    while text != before:
        before = text
        text, found = _without_forms(text)
        form = max(form, found)
    return text, form


def _without_forms(text: str) -> tuple[str, int]:
    """Return (a text after all steps until none matches, the form that they found)."""
    form, before = NONE, None
    while text != before:
        before = text = _tidied(text)
        for found, pattern, mark in _STEPS:
            text, count = pattern.subn(mark, text)
            form = max(form, found) if count else form
        text = _tidied(text)
    return " ".join(text.split()), form


def _tidied(text: str) -> str:
    """Return a text with single blanks, and none beside a mark; without marks at its ends."""
    return _MARK.join(part for part in (" ".join(p.split()) for p in text.split(_MARK)) if part)
