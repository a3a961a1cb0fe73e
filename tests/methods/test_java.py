"""The bridge to Java, on jars that the test compiles and on Lucene's, each in a process of its own.

No package installs IKAnalyzer or HanLP. So the test compiles small classes with their names, which cut in a
way that is easy to follow; where their real jars are at hand, these are tested as well.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from db_dedup.errors import DedupError, MissingJarError
from db_dedup.methods.java import JARS_VARIABLE, JAVA_SEGMENTERS
from tests.conftest import NOT_TESTED, not_tested

TEXT = "小区楼下施工扰民，投诉多次"
CUT_ALL = """
import json, sys
from db_dedup.methods import SEGMENTERS
names, texts = json.loads(sys.argv[1])
print(json.dumps({name: SEGMENTERS[name].load()(texts) for name in names}))
"""

IK = {
    "org/wltea/analyzer/core/Lexeme.java": """
package org.wltea.analyzer.core;
public class Lexeme {
    private final String text;
    Lexeme(String text) { this.text = text; }
    public String getLexemeText() { return text; }
}
""",
    "org/wltea/analyzer/core/IKSegmenter.java": """
package org.wltea.analyzer.core;
import java.io.IOException;
import java.io.Reader;
public class IKSegmenter {
    private final Reader reader;
    private final int size;
    public IKSegmenter(Reader reader, boolean useSmart) { this.reader = reader; size = useSmart ? 4 : 2; }
    /** The next characters, two or, if smart, four of them, or null. */
    public synchronized Lexeme next() throws IOException {
        char[] read = new char[size];
        int count = reader.read(read, 0, size);
        if (count > 0 && read[0] == '!') throw new IOException("a broken text");
        return count <= 0 ? null : new Lexeme(new String(read, 0, count));
    }
}
""",
}
TERM = {
    "com/hankcs/hanlp/seg/common/Term.java": """
package com.hankcs.hanlp.seg.common;
public class Term {
    public String word;
    public Term(String word) { this.word = word; }
}
""",
}
TOKENIZER = """
package com.hankcs.hanlp.{package};
import com.hankcs.hanlp.seg.common.Term;
import java.util.List;
public class {name} {{
    public {static} List<Term> {method}(String text) {{ return List.of(new Term("{name}"), new Term(text)); }}
    public {static} List<Term> {method}(char[] text) {{ throw new RuntimeException("not these"); }}
}}
"""
TOKENIZERS = {
    "hanlp-standard": ("tokenizer", "StandardTokenizer"),
    "hanlp-nlp": ("tokenizer", "NLPTokenizer"),
    "hanlp-index": ("tokenizer", "IndexTokenizer"),
    "hanlp-fast": ("tokenizer", "SpeedTokenizer"),
    "hanlp-n-shortest": ("seg.NShort", "NShortSegment"),
    "hanlp-shortest": ("seg.Dijkstra", "DijkstraSegment"),
    "hanlp-crf": ("model.crf", "CRFLexicalAnalyzer"),
}


def needs(program: str, package: str) -> None:
    if shutil.which(program) is None:
        not_tested(f"segmenters in Java (there is no {program}: install {package})")


def cut(names: list[str], texts: list[str], jars: Path | None) -> subprocess.CompletedProcess[str]:
    """Cut in another process, since a process can start Java only once."""
    environment = dict(os.environ)
    if jars:
        environment[JARS_VARIABLE] = str(jars)
    call = [sys.executable, "-c", CUT_ALL, json.dumps([names, texts])]
    return subprocess.run(call, capture_output=True, text=True, env=environment, check=False)


def hanlp_sources() -> dict[str, str]:
    sources = dict(TERM)
    for package, name in TOKENIZERS.values():
        static, method = ("static", "segment") if package == "tokenizer" else ("", "seg")
        source = TOKENIZER.format(package=package, name=name, static=static, method=method)
        sources[f"com/hankcs/hanlp/{package.replace('.', '/')}/{name}.java"] = source
    return sources


def compile_jar(sources: dict[str, str], jar: Path) -> None:
    folder = jar.parent / f"{jar.stem}-classes"
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    files = [str(folder / name) for name in sources]
    subprocess.run(["javac", "-encoding", "UTF-8", "-d", str(folder), *files], check=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted(folder.rglob("*.class")):
            archive.write(file, str(file.relative_to(folder)))


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("javac", "a JDK, such as Debian's default-jdk-headless")
    folder = tmp_path_factory.mktemp("jars")
    compile_jar(IK, folder / "IKAnalyzer2012_u6.jar")
    compile_jar(hanlp_sources(), folder / "hanlp-1.8.4.jar")
    return folder


def test_ik_and_hanlp_are_called(jars: Path) -> None:
    done = cut(["ik-fine", "ik-smart", *TOKENIZERS], ["施工扰民，ab😀", "", "\ud800"], jars)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("ik-fine")[:2] == [["施工", "扰民", "，a", "b�", "�"], []], "Java's UTF-16"
    assert found.pop("ik-smart") == [["施工扰民", "，ab�", "�"], [], ["�"]]
    for name, texts in found.items():
        own = TOKENIZERS[name][1]
        assert texts == [[own, "施工扰民，ab😀"], [own, ""], [own, "�"]]


def test_an_exception_in_java_becomes_one_of_ours(jars: Path) -> None:
    done = cut(["ik-fine"], ["!"], jars)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "db_dedup.errors.DedupError: IKAnalyzer failed in Java: java.io.IOException: a broken text"
    )


def test_a_jar_without_the_class_becomes_one_of_ours(tmp_path: Path) -> None:
    needs("java", "a Java runtime, such as Debian's default-jre-headless")
    with zipfile.ZipFile(tmp_path / "hanlp-2.0.jar", "w") as archive:
        archive.writestr("nothing.txt", "")
    done = cut(["hanlp-fast"], ["a"], tmp_path)
    assert "db_dedup.errors.DedupError: HanLP failed in Java" in done.stderr.splitlines()[-1]
    assert "com.hankcs.hanlp.tokenizer.SpeedTokenizer" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", JAVA_SEGMENTERS)
def test_what_is_missing_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JARS_VARIABLE, f"{tmp_path}{os.pathsep}{tmp_path / 'no such'}")
    monkeypatch.setattr("db_dedup.methods.java._java_library", lambda: "libjvm.so")
    (tmp_path / "another.jar").touch()
    segmenter = JAVA_SEGMENTERS[name]
    with pytest.raises(MissingJarError, match=r"there is no .*\.jar in ") as failed:
        segmenter.load()
    message = str(failed.value)
    assert message.startswith(segmenter.library)
    assert segmenter.source in message
    assert message.endswith(f"name its folder in {JARS_VARIABLE}")
    assert str(tmp_path / "no such") in message


def test_the_jar_with_the_highest_release_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))
    monkeypatch.setattr("db_dedup.methods.java._java_library", lambda: "libjvm.so")
    for name in ("1.8.4-sources", "portable-1.8.4", "1.8.4-javadoc", "1.8.4", "1.8.3", "1.10.0-sources"):
        (tmp_path / f"hanlp-{name}.jar").touch()
    assert [jar.name for jar in JAVA_SEGMENTERS["hanlp-fast"]._find_jars()] == ["hanlp-portable-1.8.4.jar"]
    (tmp_path / "hanlp-1.10.0.jar").touch()
    assert [jar.name for jar in JAVA_SEGMENTERS["hanlp-fast"]._find_jars()] == ["hanlp-1.10.0.jar"]


def test_a_folder_that_cannot_be_read_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root, who may run the tests, can read every folder."""
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
    jar = tmp_path / "open" / "hanlp-1.8.4.jar"
    jar.touch()
    read = Path.iterdir

    def refuse(folder: Path) -> Iterator[Path]:
        if folder.name == "closed":
            raise PermissionError(str(folder))
        return read(folder)

    monkeypatch.setattr(Path, "iterdir", refuse)
    folders = ["~no-such-account/jars", str(tmp_path / "closed"), str(tmp_path / "open")]
    monkeypatch.setenv(JARS_VARIABLE, os.pathsep.join(folders))
    assert JAVA_SEGMENTERS["hanlp-fast"]._find_jars() == [jar]
    monkeypatch.setenv(JARS_VARIABLE, os.pathsep.join(folders[:2]))
    with pytest.raises(MissingJarError, match="~no-such-account"):
        JAVA_SEGMENTERS["hanlp-fast"]._find_jars()


def test_java_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> str:
        raise OSError("no JVM")

    monkeypatch.setattr("jpype.getDefaultJVMPath", no_java)
    with pytest.raises(MissingJarError, match="there is no Java: install a runtime"):
        JAVA_SEGMENTERS["ik-smart"].check()


REAL = {
    "lucene-smartcn": ["小区", "楼下", "施工", "扰民", "投诉", "多次"],
    "ik-smart": ["小区", "楼下", "施工", "扰民", "投诉", "多次"],
    "hanlp-standard": ["小区", "楼下", "施工", "扰民", "，", "投诉", "多次"],
}


@pytest.mark.parametrize("name", REAL)
def test_the_real_jar_cuts(name: str) -> None:
    segmenter = JAVA_SEGMENTERS[name]
    try:
        segmenter.check()
    except DedupError as error:
        if name == "lucene-smartcn":
            not_tested(f"segmenters in Java ({error})")
        pytest.skip(f"{NOT_TESTED}{error}")  # no package installs these, so they are missing in CI, too
    done = cut([name], [TEXT, "", "😀 Lines\nof text"], None)
    assert done.returncode == 0, done.stderr
    cuts = json.loads(done.stdout)[name]
    assert cuts[0] == REAL[name]
    assert cuts[1] == []
    assert "".join(cuts[2]).replace(" ", "").lower().startswith(("😀line", "line"))
