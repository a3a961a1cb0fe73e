"""The segmenters of the registry; those in Java are in test_java.py."""

import importlib.util
import subprocess
import sys

import pytest

from db_dedup.errors import MissingExtraError
from db_dedup.flow.text.segment import SEGMENTERS as PRODUCT_SEGMENTERS
from db_dedup.flow.text.segment import make_segmenter
from db_dedup.methods import FEATURES, HASHES, METHODS, SEGMENTERS
from db_dedup.methods.java import JAVA_SEGMENTERS
from tests.conftest import not_tested

TEXT = "我爱北京天安门。小区楼下施工扰民，投诉多次 ABC"


@pytest.mark.parametrize("name", PRODUCT_SEGMENTERS)
def test_the_product_cuts(name: str) -> None:
    cut = SEGMENTERS[name].load()
    one, none, lines = cut([TEXT, "", "a\n\nb\tc"])
    assert [*one, "\n"] == make_segmenter(name).cut_batch([TEXT])
    assert none == []
    assert lines == cut(["a b c"])[0]
    assert cut([]) == []


def test_jieba_by_its_three_modes() -> None:
    text = "中国科学院计算所"
    assert SEGMENTERS["jieba"].load()([text]) == [["中国科学院", "计算所"]]
    assert SEGMENTERS["jieba-search"].load()([text]) == [
        ["中国", "科学", "学院", "科学院", "中国科学院", "计算", "计算所"]
    ]
    assert SEGMENTERS["jieba-full"].load()([text]) == [
        ["中国", "中国科学院", "科学", "科学院", "学院", "计算", "计算所"]
    ]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # it leaves the files of its model open
def test_thulac_cuts_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    if missing := SEGMENTERS["thulac"].missing:
        not_tested(f"thulac ({missing})")
    cut = SEGMENTERS["thulac"].load()
    assert cut([TEXT, "", "施工"])[0][:5] == ["我", "爱", "北京", "天安门", "。"]
    assert cut([""]) == [[]]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("entry", "module", "extra"),
    [
        (SEGMENTERS["thulac"], "thulac", "thulac"),
        (SEGMENTERS["ik-smart"], "jpype", "methods"),
        (HASHES["murmur"], "mmh3", "methods"),
    ],
)
def test_an_entry_says_what_to_install(
    entry: object, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("db_dedup.extras.find_spec", lambda name: None if name == module else found(name))
    assert getattr(entry, "missing") == str(MissingExtraError(module, extra))  # noqa: B009


def test_all_others_need_nothing_more() -> None:
    optional = {"thulac", *JAVA_SEGMENTERS}
    assert {name for name, entry in SEGMENTERS.items() if name not in optional and entry.missing} == set()
    assert all(entry.missing is None for entry in [*FEATURES.values(), *METHODS.values()])


def test_the_registries_load_nothing_heavy() -> None:
    """To list the methods takes neither Java nor THULAC."""
    code = (
        "import sys, db_dedup.methods as m;"
        "[entry.summary for r in (m.SEGMENTERS, m.FEATURES, m.METHODS, m.HASHES) for entry in r.values()];"
        "print([name for name in ('jpype', 'thulac', 'mmh3', 'rbloom', 'sqlalchemy') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
