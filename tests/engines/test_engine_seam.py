"""Another engine runs the same jobs, and gives the same views."""

import threading
from collections.abc import Callable
from typing import Any, Final

import pytest
from sqlalchemy import delete, update

from db_dedup import ConfigError, UnknownNameError
from db_dedup.app import engines
from db_dedup.app.engines import find_engine
from db_dedup.cli.demo import petitions
from db_dedup.config import EngineSettings
from db_dedup.flow.text import frames
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.sample import Sample, generate_petitions
from tests import forms
from tests.scan.conftest import answer, fill_database, watch
from tests.servers import Database
from tests.thorough import quick_first

UseSlowEngine = Callable[[], None]

OPTIONS: Final[list[dict[str, Any]]] = [
    {},
    {"within": "region"},
    {"preset": "strict", "radius": 7},
    {"similarity": "cosine", "threshold": 0.5},
]


@pytest.fixture
def use_slow_engine(monkeypatch: pytest.MonkeyPatch) -> UseSlowEngine:
    def use() -> None:
        monkeypatch.setitem(engines._ENGINES, "slow", "tests.engines.slow_engine:SlowEngine")
        monkeypatch.setattr(engines, "DEFAULT_ENGINE", "slow")

    return use


@pytest.fixture(scope="module")
def sample() -> Sample:
    return generate_petitions(60)


@pytest.mark.parametrize("options", quick_first(OPTIONS))
def test_it_gives_the_same_views(
    database: Database, sample: Sample, options: dict[str, Any], use_slow_engine: UseSlowEngine
) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine, **options)
    dedup.scan()
    expected = answer(dedup)
    assert expected[0]
    use_slow_engine()
    assert dedup.verify().is_right, "its fresh answer is the one that the embedded engine stored"
    dedup.database.downgrade("base")
    slow = watch(database.engine, **options)
    slow.scan()
    assert answer(slow) == expected
    differences = slow.preview().differences
    assert differences is not None
    assert differences.count == 0


def test_its_worker_keeps_the_same_answer(
    sqlite_database: Database,
    sample: Sample,
    use_slow_engine: UseSlowEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill_database(sqlite_database.engine, sample)
    use_slow_engine()
    dedup = watch(sqlite_database.engine)
    dedup.attach()
    dedup.scan()
    first, second, third = (petition.id for petition in sample.petitions[:3])
    with sqlite_database.engine.begin() as connection:
        connection.execute(delete(petitions).where(petitions.c.id == first))
        text = {"title": "路灯不亮", "content": "小区门口的路灯坏了三个月，晚上出行很不安全，希望尽快修好。"}
        connection.execute(update(petitions).where(petitions.c.id.in_((second, third))).values(text))
    ChangeWorker([dedup.worker()]).run(threading.Event(), drain=True)
    assert (str(second), str(third)) in {(pair.key_a, pair.key_b) for pair in dedup.pairs()}
    monkeypatch.setattr(engines, "DEFAULT_ENGINE", "embedded")
    assert dedup.verify().is_right


def test_both_leave_out_the_same_frames(
    database: Database, use_slow_engine: UseSlowEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "LEAST_ROWS", 30)
    own = forms.texts(40)
    forms.write(database.engine, forms.in_form([*own, forms.edited(own[3])]))
    dedup = forms.watch(database.engine)
    dedup.attach()
    report = dedup.scan()
    expected, frozen = answer(dedup), forms.stored_frames(dedup)
    assert [(pair.key_a, pair.key_b) for pair in expected[0]] == [("4", "41")]
    assert frozen.has_frames
    use_slow_engine()
    assert dedup.verify().is_right
    forms.write(database.engine, forms.in_form([forms.edited(own[5])]), first=101)
    ChangeWorker([forms.watch(database.engine).worker()]).run(threading.Event(), drain=True)
    assert [(pair.key_a, pair.key_b) for pair in answer(dedup)[0]] == [("4", "41"), ("6", "101")]
    again = dedup.scan(rebuild=True)
    assert forms.stored_frames(dedup).has_same_frames(frozen)
    assert report.frames is not None
    assert again.frames is not None
    assert (report.frames.rows, again.frames.rows) == (41, 42)


def test_what_it_does_not_offer_is_refused(
    sqlite_database: Database, sample: Sample, use_slow_engine: UseSlowEngine
) -> None:
    fill_database(sqlite_database.engine, sample)
    dedup = watch(sqlite_database.engine)
    dedup.scan()
    use_slow_engine()
    with pytest.raises(ConfigError, match=r"offers scans only, not checks of records"):
        dedup.check({"title": "路灯不亮"})
    with pytest.raises(ConfigError, match=r"offers scans only, not expanded pairs"):
        list(dedup.pairs(expand=True))


def test_an_engine_that_is_not_there() -> None:
    with pytest.raises(UnknownNameError, match=r"engine 'sparc'"):
        find_engine(EngineSettings(name="sparc"))
