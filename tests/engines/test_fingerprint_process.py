"""The process that fingerprints gives what the fingerprinter gives, and never outlives its owner."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from db_dedup.config import watched_table
from db_dedup.engines.embedded import engine, fingerprint_process
from db_dedup.engines.embedded.engine import EmbeddedEngine
from db_dedup.engines.embedded.fingerprint_process import FingerprintProcess, FingerprintProcesses
from db_dedup.errors import DedupError
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.records import Family
from db_dedup.records.recipe import Recipe
from db_dedup.sample import generate_petitions

NOISY = """
import os

class Noisy:
    name = "noisy"

    def __init__(self, user_words):
        print("a model was loaded")

    def cut_batch(self, texts):
        os.write(1, b"by a library in C")
        return [token for text in texts for token in (*text.split(), "\\n")]
"""
LONELY = """
import threading

class Lonely:
    name = "lonely"

    def __init__(self, user_words):
        self.thread = threading.get_ident()

    def cut_batch(self, texts):
        assert threading.get_ident() == self.thread
        return [token for text in texts for token in (*text.split(), "\\n")]
"""
WATCHED = watched_table(
    "petitions", {"columns": {"title": 2, "content": 1, "region": {"kind": "value"}}, "within": "region"}
)


PAGES = [
    [(p.title, p.content, p.region or "") for p in generate_petitions(300, seed=3).petitions[first:end]]
    for first, end in ((0, 150), (150, 300))
]


def test_it_answers_as_the_fingerprinter_does() -> None:
    here = Fingerprinter(WATCHED.recipe)
    with FingerprintProcess(WATCHED.recipe) as elsewhere:
        for page in PAGES:
            within = [row[2] for row in page]
            require_equal(elsewhere.fingerprint(page, within), here.fingerprint(page, within))


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("compares_known", [False, True])
def test_threads_answer_as_one_does(threads: int, compares_known: bool) -> None:
    rows = [*chain(*PAGES)]
    within = [row[2] for row in rows]
    one, some = Fingerprinter(WATCHED.recipe), Fingerprinter(WATCHED.recipe, threads=threads)
    known = [digest if i % 3 else None for i, digest in enumerate(one.fingerprint(rows, within).digests)]
    wanted, found = (
        each.fingerprint(rows, within, known, compares_known=compares_known) for each in (one, some)
    )
    require_equal(found, wanted)


def require_equal(found: FingerprintedRows, wanted: FingerprintedRows) -> None:
    assert found.digests == wanted.digests
    for name in ("fingerprints", "has_fingerprint", "is_known", "framed", "forms"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name))
    for name in ("starts", "hashes", "weights"):
        assert np.array_equal(getattr(found.features, name), getattr(wanted.features, name))
    for name in ("starts", "values"):
        assert np.array_equal(getattr(found.sketches, name), getattr(wanted.sketches, name))


def test_its_end_is_an_error_that_says_so() -> None:
    with FingerprintProcess(WATCHED.recipe) as elsewhere:
        elsewhere._process.kill()
        with pytest.raises(DedupError, match="ended with code -9"):
            elsewhere.fingerprint([("a", "b", "c")] * 20_000)


def test_what_it_does_not_understand_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not ended would wait for the next question for ever."""
    monkeypatch.setattr(fingerprint_process, "_SECONDS_TO_END", 0.1)
    with FingerprintProcess(WATCHED.recipe) as elsewhere:
        elsewhere._answers.close()
        elsewhere._answers = BytesIO(b"hello")
        with pytest.raises(DedupError, match="ended with code -9"):
            elsewhere.fingerprint([("a", "b", "c")])


def register(folder: Path, name: str, source: str) -> Recipe:
    """Make a segmenter of another package; return a recipe with it."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[db_dedup.segmenters]\n{name} = {name}:{name.title()}\n")
    (folder / f"{name}.py").write_text(source)
    return replace(WATCHED.recipe, segmenter=name)


def test_a_segmenter_of_another_package_is_called_in_one_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recipe = register(tmp_path, "lonely", LONELY)
    monkeypatch.syspath_prepend(tmp_path)
    done = Fingerprinter(recipe, threads=2).fingerprint([("a title", "a text", "c")] * 300)
    assert len(done.digests) == 300


def test_a_segmenter_may_print(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = register(tmp_path, "noisy", NOISY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    with FingerprintProcess(recipe) as elsewhere:
        found = elsewhere.fingerprint([("title of it", "a text of words", "c")], ["c"])
    assert found.has_fingerprint.all()


def test_files_of_the_current_folder_are_not_its_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("queue", "secrets", "numpy", "jieba"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with FingerprintProcess(WATCHED.recipe) as elsewhere:
        assert elsewhere.fingerprint([("a", "b", "c")]).digests


def test_it_ends_with_its_owner() -> None:
    with FingerprintProcess(WATCHED.recipe) as elsewhere:
        process = elsewhere._process
        assert process.poll() is None
    assert process.poll() is not None


def test_several_answer_pages_of_several_threads() -> None:
    petitions = generate_petitions(400, seed=3).petitions
    pages = [
        [(p.title, p.content, p.region or "") for p in petitions[first : first + 50]]
        for first in range(0, 400, 50)
    ]
    here = Fingerprinter(WATCHED.recipe)
    with (
        FingerprintProcesses(WATCHED.recipe, 2) as elsewhere,
        ThreadPoolExecutor(max_workers=4) as threads,
    ):
        for page, found in zip(pages, threads.map(elsewhere.fingerprint, pages), strict=True):
            assert found.digests == here.fingerprint(page).digests


def test_all_of_several_end_with_their_owner() -> None:
    with FingerprintProcesses(WATCHED.recipe, 2) as elsewhere:
        processes = [elsewhere._idle.get()._process for _ in range(2)]
        assert [process.poll() for process in processes] == [None, None]
    assert None not in [process.poll() for process in processes]


def test_a_table_has_a_process_for_each_core_if_it_is_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    @contextmanager
    def start(_: Recipe, count: int, *, keep_weights: bool) -> Iterator[None]:
        assert not keep_weights
        started.append(count)
        yield

    monkeypatch.setattr(engine, "FingerprintProcesses", start)
    for cores, rows in ((4, 19_999), (4, 20_000), (4, 59_999), (4, 1_000_000), (64, 1_000_000)):
        monkeypatch.setattr(engine, "usable_cores", lambda cores=cores: cores)
        with EmbeddedEngine().scan(WATCHED, WATCHED.recipe, [Family.NUMBER], rows):
            pass
    assert started == [1, 2, 4, 8]
