"""Segmenters written in Java, run in this process through JPype, from jars that the user provides.

IKAnalyzer, HanLP 1.x and Lucene's SmartChineseAnalyzer. Their jars are looked for, by name, in the folders of
the environment variable DB_DEDUP_JARS, or else in ~/.db-dedup/jars and /usr/share/java, where Debian puts
them. The folder of a jar is on the class path, too: settings and dictionaries beside it are found, such as
hanlp.properties.

The Java machine starts with the first segmenter and ends with the process: a process can start only one.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from db_dedup.errors import DedupError, MissingJarError
from db_dedup.extras import load, require
from db_dedup.methods.corpus import CutTexts
from db_dedup.methods.hashes import EXTRA
from db_dedup.translation import Phrase

JARS_VARIABLE: Final = "DB_DEDUP_JARS"
_DEFAULT_FOLDERS: Final = ("~/.db-dedup/jars", "/usr/share/java")
_WITHOUT_CLASSES: Final = ("-sources", "-javadoc")
"""Endings of the names of jars without classes, which releases of a library also contain."""
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_Cut = Callable[[str], list[str]]


@dataclass(frozen=True)
class JavaSegmenter:
    """A segmenter in a jar.

    Attributes:
        library: its name, for messages.
        jars: patterns of the file names of the jars that it needs.
        source: where the jars come from, for messages.
        start: returns what cuts one text, once the Java machine runs.
    """

    library: str
    jars: tuple[str, ...]
    source: str
    start: Callable[[], _Cut]

    def check(self) -> None:
        """Look for what it needs, without starting Java.

        Raises:
            MissingExtraError: JPype is not installed.
            MissingJarError: Java or a jar is not there.
        """
        require("jpype", EXTRA)
        _java_library()
        self._find_jars()

    def load(self) -> CutTexts:
        """Return what cuts texts; start Java if it does not run yet.

        Raises:
            MissingExtraError: JPype is not installed.
            MissingJarError: Java or a jar is not there.
            DedupError: the library could not be started.
        """
        self.check()
        _run_java(self._find_jars())
        with _translated(self.library):
            cut = self.start()

        def cut_texts(texts: Sequence[str]) -> list[list[str]]:
            with _translated(self.library):
                return [cut(_LONE_SURROGATE.sub("\ufffd", text)) for text in texts]

        return cut_texts

    def _find_jars(self) -> list[Path]:
        found = []
        for pattern in self.jars:
            jar = _find_jar(pattern)
            if jar is None:
                raise MissingJarError(
                    "{library}: there is no {pattern} in {folders}; {source}, put it there, or name its "
                    "folder in {variable}",
                    library=self.library,
                    pattern=pattern,
                    folders=" or ".join(map(str, _folders())),
                    source=self.source,
                    variable=JARS_VARIABLE,
                )
            found.append(jar)
        return found


def _ik(is_smart: bool) -> Callable[[], _Cut]:
    """Return what starts IKAnalyzer: the longest words only if it is smart, else all words."""

    def start() -> _Cut:
        segmenter, reader = (
            _java_class("org.wltea.analyzer.core.IKSegmenter"),
            _java_class("java.io.StringReader"),
        )

        def cut(text: str) -> list[str]:
            words = segmenter(reader(text), is_smart)
            tokens = []
            while (lexeme := words.next()) is not None:
                tokens.append(_text(lexeme.getLexemeText()))
            return tokens

        return cut

    return start


def _hanlp_tokenizer(name: str) -> Callable[[], _Cut]:
    """Return what starts one of HanLP's ready tokenizers."""

    def start() -> _Cut:
        tokenizer = _java_class(f"com.hankcs.hanlp.tokenizer.{name}")
        return lambda text: [_text(term.word) for term in tokenizer.segment(text)]

    return start


def _hanlp_segment(name: str) -> Callable[[], _Cut]:
    """Return what starts one of HanLP's segment classes with its default settings."""

    def start() -> _Cut:
        segment = _java_class(f"com.hankcs.hanlp.{name}")()
        return lambda text: [_text(term.word) for term in segment.seg(text)]

    return start


def _smart_chinese() -> _Cut:
    analyzer = _java_class("org.apache.lucene.analysis.cn.smart.SmartChineseAnalyzer")()
    term_class = _java_class("org.apache.lucene.analysis.tokenattributes.CharTermAttribute").class_

    def cut(text: str) -> list[str]:
        stream = analyzer.tokenStream("", text)
        try:
            term = stream.addAttribute(term_class)
            stream.reset()
            tokens = []
            while stream.incrementToken():
                tokens.append(_text(term.toString()))
            stream.end()
        finally:
            stream.close()  # else the analyser takes no other text
        return tokens

    return cut


def _of_ik(is_smart: bool) -> JavaSegmenter:
    source = Phrase("download IKAnalyzer's jar, 2012 or later")
    return JavaSegmenter("IKAnalyzer", ("*ik*analyzer*.jar",), source, _ik(is_smart))


def _of_hanlp(start: Callable[[], _Cut]) -> JavaSegmenter:
    source = Phrase("download a jar of HanLP 1.x, and for other models than those in it also its data folder")
    return JavaSegmenter("HanLP", ("hanlp*.jar",), source, start)


JAVA_SEGMENTERS: Final = {
    "ik-fine": _of_ik(is_smart=False),
    "ik-smart": _of_ik(is_smart=True),
    "hanlp-standard": _of_hanlp(_hanlp_tokenizer("StandardTokenizer")),
    "hanlp-nlp": _of_hanlp(_hanlp_tokenizer("NLPTokenizer")),
    "hanlp-index": _of_hanlp(_hanlp_tokenizer("IndexTokenizer")),
    "hanlp-n-shortest": _of_hanlp(_hanlp_segment("seg.NShort.NShortSegment")),
    "hanlp-shortest": _of_hanlp(_hanlp_segment("seg.Dijkstra.DijkstraSegment")),
    "hanlp-crf": _of_hanlp(_hanlp_segment("model.crf.CRFLexicalAnalyzer")),
    "hanlp-fast": _of_hanlp(_hanlp_tokenizer("SpeedTokenizer")),
    "lucene-smartcn": JavaSegmenter(
        "Lucene's SmartChineseAnalyzer",
        ("lucene-core-*.jar", "lucene-analyzers-common-*.jar", "lucene-analyzers-smartcn-*.jar"),
        Phrase("install Debian's liblucene8-java, or download the jars of Lucene 8"),
        _smart_chinese,
    ),
}


def _folders() -> list[Path]:
    chosen = os.environ.get(JARS_VARIABLE, "").split(os.pathsep)
    return list(map(_expanded, list(filter(None, chosen)) or _DEFAULT_FOLDERS))


def _expanded(folder: str) -> Path:
    """Return the path of a folder; one that begins with ~ stays as it is where there is no such home."""
    with suppress(RuntimeError):
        return Path(folder).expanduser()
    return Path(folder)


def _find_jar(pattern: str) -> Path | None:
    """Return the jar with the highest release of the first folder that has one and can be read."""
    for folder in _folders():
        with suppress(OSError):
            jars = [file for file in folder.iterdir() if fnmatch(file.name.lower(), pattern)]
            if jars := [jar for jar in jars if not jar.stem.lower().endswith(_WITHOUT_CLASSES)]:
                return max(jars, key=_release)
    return None


def _release(jar: Path) -> tuple[list[int], str]:
    """Return what jars are ordered by: the numbers in the name, then the name."""
    return [int(number) for number in re.findall(r"\d+", jar.name)], jar.name


def _java_library() -> str:
    """Return the path of the library of the Java machine."""
    jpype = load("jpype", EXTRA)
    try:
        path: str = jpype.getDefaultJVMPath()
    except (OSError, ValueError) as error:  # JPype's own error is a ValueError
        raise MissingJarError(
            "there is no Java: install a runtime, such as Debian's openjdk-17-jre-headless, or set JAVA_HOME"
        ) from error
    return path


def _run_java(jars: Sequence[Path]) -> None:
    """Start Java, or give the running one more jars."""
    jpype = load("jpype", EXTRA)
    paths = [str(path) for jar in jars for path in (jar, jar.parent)]
    for path in paths:
        jpype.addClassPath(path)
    if not jpype.isJVMStarted():
        # Python keeps Ctrl-C: Java would end the process at once.
        try:
            jpype.startJVM(interrupt=False, convertStrings=False)
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            raise DedupError("Java could not be started: {error}", error=error) from error


def _java_class(name: str) -> Any:
    return load("jpype", EXTRA).JClass(name)


def _text(string: Any) -> str:
    """Return a Java string as Python's; half of a character outside of the basic plane becomes "\ufffd"."""
    try:
        return str(string)
    except UnicodeDecodeError:
        return bytes(string.getBytes("UTF-16LE")).decode("utf-16-le")


@contextmanager
def _translated(library: str) -> Iterator[None]:
    """Re-raise exceptions of Java as DedupError."""
    jpype = load("jpype", EXTRA)
    try:
        yield
    except (jpype.JException, TypeError) as error:
        raise DedupError("{library} failed in Java: {error}", library=library, error=error) from error
