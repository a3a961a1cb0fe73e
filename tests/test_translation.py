"""Messages in Chinese: each is translated, and what is for programs stays English."""

from __future__ import annotations

import copy
import io
import os
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from babel.messages.catalog import Message
from babel.messages.mofile import write_mo

from db_dedup.cli.shared.usage import language_first, translated_fault
from db_dedup.errors import ConfigError, DedupError, FaultyTablesError, UnknownNameError
from db_dedup.frames.data_frame import find_duplicates
from db_dedup.plurals import counted
from db_dedup.progress import NullProgress
from db_dedup.translation import Phrase, language_of_environment, tr, use_language
from translations.__main__ import all_translated, catalogue_file, read, template
from translations.extract import all_messages

LOCALE: Final = "zh_CN"
_ENGLISH: Final = re.compile(r"(?:\b[a-z]{3,} ){3}")
"""Words of an English sentence."""
_COMMAND: Final = re.compile(r"Usage: .*|`[^`]*`|db-dedup [ -~]*")
"""What stays as it is typed."""


def messages() -> list[Message]:
    return [message for message in read(LOCALE) if message.id]


def forms(text: str | tuple[str, ...] | list[str] | None) -> list[str]:
    return [text] if isinstance(text, str) else list(text or ())


def fields(template: str) -> set[str]:
    """The fields of a template; one that shows braces, and is never filled in, has none."""
    try:
        named = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    except ValueError:
        return set()
    return {name for name in named if name.isidentifier()}


@pytest.fixture
def chinese() -> Iterator[None]:
    use_language("zh")
    yield
    use_language("en")


def test_the_catalogue_has_the_messages_of_the_code_and_no_other() -> None:
    """`make messages` adds and removes them; then the new ones need a translation."""
    wanted = {(m.context, *forms(m.id)[:1]) for m in template() if m.id}
    there = {(m.context, *forms(m.id)[:1]) for m in messages()}
    assert wanted - there == set()
    assert there - wanted == set()


def test_the_steps_of_a_scan_are_messages() -> None:
    """A bar whose step is no message of the code stays English."""

    class Listens(NullProgress):
        def start(self, step: str, total: int | None) -> None:
            del total
            steps.add(step)

    steps: set[str] = set()
    find_duplicates(pa.table({"body": ["路灯坏了三个月"] * 3}), ["body"], progress=Listens())
    assert "fingerprints" in steps
    assert steps <= {m.message for m in all_messages()}


def test_every_message_is_translated() -> None:
    assert [message.id for message in messages() if not all_translated(message.string)] == []


def test_every_translation_has_the_fields_of_its_message() -> None:
    wrong = [
        (said, fields(forms(message.id)[-1]))
        for message in messages()
        for said in forms(message.string)
        if fields(said) != fields(forms(message.id)[-1])
    ]
    assert wrong == []


def test_no_translation_is_a_guess() -> None:
    assert [message.id for message in messages() if message.fuzzy] == []


def test_the_compiled_catalogue_is_that_of_the_file() -> None:
    compiled = io.BytesIO()
    write_mo(compiled, read(LOCALE))
    assert catalogue_file(LOCALE).with_suffix(".mo").read_bytes() == compiled.getvalue()


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.GBK"}, "zh"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "DB_DEDUP_LANG": "en"}, "en"),
        ({"LANG": "de_DE.UTF-8", "DB_DEDUP_LANG": "zh"}, "zh"),
    ],
)
def test_the_language_of_the_environment(environment: dict[str, str], language: str) -> None:
    assert language_of_environment(environment) == language


@pytest.mark.parametrize(
    ("given", "first"),
    [
        (["scan", "petitions", "--lang", "zh"], ["--lang", "zh", "scan", "petitions"]),
        (["--lang=zh", "scan"], ["--lang", "zh", "scan"]),
        (["explain", "t", "--", "--lang", "zh"], ["explain", "t", "--", "--lang", "zh"]),
        (["scan", "--lang"], ["--lang"]),
        ([], []),
    ],
)
def test_the_option_may_be_before_or_after_the_command(given: list[str], first: list[str]) -> None:
    assert language_first(given) == first


def test_a_phrase_is_english_until_it_is_shown() -> None:
    phrase = Phrase("{rows}, such as:", rows=counted(1_234, "row"))
    assert phrase == "1,234 rows, such as:"
    assert tr(phrase) == phrase
    assert phrase.in_language("zh") == "1,234 条记录，例如："
    assert copy.deepcopy(phrase).in_language("zh") == phrase.in_language("zh")
    assert counted(1, "row") == "1 row"


@pytest.mark.usefixtures("chinese")
def test_tr_speaks_the_language_of_the_process() -> None:
    assert tr("{changes} of {table} queued again", changes=counted(2, "change"), table="t") == (
        "t 的 2 条变更已重新放入队列"
    )
    assert tr("a message that the catalogue does not have") == "a message that the catalogue does not have"
    assert tr("") == ""


@pytest.mark.usefixtures("chinese")
def test_an_error_is_english_whatever_the_process_speaks() -> None:
    error = UnknownNameError(Phrase("watched table"), "petition", ["petitions"])
    assert str(error) == "unknown watched table 'petition': did you mean petitions?"
    assert error.in_language("en") == str(error)
    assert error.in_language("zh") == "未知的受监视的表 'petition'：您是指 petitions 吗？"
    assert copy.copy(error).in_language("zh") == error.in_language("zh")


def test_errors_in_errors_are_translated_and_hide_passwords() -> None:
    inner = ConfigError("cannot connect: {message}", message="postgresql://me:secret@host/x\n")
    outer = FaultyTablesError({"letters": inner})
    assert outer.in_language("zh") == "letters：无法连接：postgresql://me:***@host/x\\n"
    assert DedupError("{error}", error=ValueError(Phrase("no text"))).in_language("zh") == "no text"


@pytest.mark.parametrize(
    ("said", "chinese_words"),
    [
        ("Missing argument 'TABLE'.", "缺少参数 'TABLE'。"),
        (
            "No such option: --foo (Possible options: --for, --full)",
            "没有选项 --foo（可能是：--for, --full）",
        ),
        ("Invalid value for '--limit': Value error, 'x' is not one of 'a', 'b'.", "'--limit' 的值无效：'x' "),
        ("something that the parser never said before", "something that the parser never said before"),
    ],
)
@pytest.mark.usefixtures("chinese")
def test_faults_of_usage_are_recognised_by_their_forms(said: str, chinese_words: str) -> None:
    assert chinese_words in translated_fault(said)


def test_a_fault_of_usage_has_no_words_of_the_library() -> None:
    said = (
        "Invalid value for '--lang' (env var: 'DB_DEDUP_LANG'): Value error, 'fr' is not one of 'en', 'zh'."
    )
    assert translated_fault(said) == said.replace("Value error, ", "")


def command(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("DB_DEDUP_", "LC_", "LANG"))}
    return subprocess.run(
        [sys.executable, "-m", "db_dedup.cli", *arguments],
        cwd=folder,
        env=kept | {"PYTHONUTF8": "1", "TERM": "dumb"} | environment,
        capture_output=True,
        check=False,
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demo that was made in Chinese, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    done = command(folder, "--lang", "zh", "demo", "--rows", "120")
    assert done.returncode == 0, done.stderr
    (folder / "printed").write_bytes(done.stdout + done.stderr)
    return folder


def test_the_demo_speaks_chinese_only(demo: Path) -> None:
    printed = (demo / "printed").read_text(encoding="utf-8")
    assert "条记录，用时" in printed
    assert "接下来" in printed
    assert _ENGLISH.search(_COMMAND.sub("", printed)) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scan", "petitions"], "个重复组，共"),
        (["scan", "petitions", "--dry-run"], "没有写入任何内容"),
        (["status"], "上次扫描状态"),
        (["groups", "petitions", "--texts"], "（代表记录）"),
        (["explain", "petitions", "1", "2"], "不是重复对"),
        (["verify", "petitions"], "结果与重新全量扫描的一致"),
        (["sql", "grants"], "请说明是哪个表"),
        (["scan", "letters"], "未知的设置中的表 'letters'：现有 petitions"),
        (["status", "--url", "oracle://me@host/x"], "不支持 Oracle"),
        (["status", "--url", "postgres://me@host/x"], "未知的数据库 'postgres'："),
        (["scan"], "缺少参数 'TABLE'"),
        (["scna"], "您是指 'scan' 吗"),
        (["groups", "petitions", "--limit", "0"], "应不小于 1"),
        (["explain", "--help"], "显示本说明后退出"),
        (["--help"], "为当前的 shell 安装"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_speak_chinese_only(demo: Path, arguments: list[str], said: str) -> None:
    done = command(demo / "db-dedup-demo", *arguments, LANG="zh_CN.UTF-8")
    printed = (done.stdout + done.stderr).decode()
    assert said in printed
    assert _ENGLISH.search(_COMMAND.sub("", printed)) is None


@pytest.mark.parametrize("arguments", [["--help"], ["pairs", "--help"], ["worker", "--help"]], ids=" ".join)
def test_help_in_chinese_is_not_cut_off(tmp_path: Path, arguments: list[str]) -> None:
    printed = command(tmp_path, *arguments, LANG="zh_CN.UTF-8", COLUMNS="60").stdout.decode()
    assert "选项" in printed
    assert "…" not in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "--json"],
        ["pairs", "petitions", "--format", "csv"],
        ["explain", "petitions", "1", "2", "--json"],
    ],
    ids=" ".join,
)
def test_data_are_the_same_in_both_languages(demo: Path, arguments: list[str]) -> None:
    english, chinese_one = (
        command(demo / "db-dedup-demo", *arguments, DB_DEDUP_LANG=language) for language in ("en", "zh")
    )
    assert english.stdout == chinese_one.stdout != b""


def test_a_terminal_in_gbk_reads_what_it_can_show(demo: Path) -> None:
    gbk = {"LANG": "zh_CN.GBK", "PYTHONIOENCODING": "gbk", "PYTHONUTF8": "0"}
    for arguments in (["scan", "petitions"], ["status"], ["scan"], ["--help"]):
        done = command(demo / "db-dedup-demo", *arguments, **gbk)
        printed = (done.stdout + done.stderr).decode("gbk")
        assert re.search("重复|扫描|参数", printed)


def test_english_reads_no_catalogue() -> None:
    program = (
        "import db_dedup.translation as t, sys\n"
        "t.tr('{table}', table=t.Phrase('table'))\n"
        "assert 'gettext' not in sys.modules\n"
        "assert t.catalogue.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-S", "-c", program], check=True, cwd=Path(__file__).parent.parent)
