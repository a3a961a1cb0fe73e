"""`[schedule]` of the settings file, time zones, and what was missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from db_dedup import Settings
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.jobs.worker.scheduled_scans import cron_trigger, interval_trigger, was_missed


def read(folder: Path, section: str) -> Settings:
    file = folder / "dedup.toml"
    table = "[tables.petitions]\ncolumns = { x = 1 }\n"
    file.write_text(f"[schedule]\n{section}\n{table}", encoding="utf-8")
    return Settings.from_file(file)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("", "either cron = '0 2 \\* \\* \\*' or every = '6h'"),
        ("cron = '0 3 * * *'\nevery = '6h'", "either cron"),
        ("every = '6h'\ntimezone = 'Asia/Shanghai'", "an interval has no time zone"),
        ("every = 6", "every"),
    ],
)
def test_faults(tmp_path: Path, section: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, section)


def test_an_unknown_table(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean petitions"):
        read(tmp_path, "every = '6h'\ntables = ['petitons']")


def test_an_unknown_time_zone() -> None:
    with pytest.raises(ConfigError, match="unknown time zone 'Asia/Peking'"):
        cron_trigger("0 3 * * *", "Asia/Peking")


def test_the_time_zone_counts() -> None:
    trigger = cron_trigger("0 3 * * *", "Asia/Shanghai")
    assert trigger.get_next_fire_time(None, datetime(2026, 11, 16, tzinfo=UTC)) == datetime(
        2026, 11, 17, 3, tzinfo=ZoneInfo("Asia/Shanghai")
    )


def test_what_was_missed() -> None:
    nightly, now = cron_trigger("0 3 * * *", "UTC"), datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert was_missed(nightly, now - timedelta(hours=10), now)
    assert not was_missed(nightly, now - timedelta(hours=8), now)
    assert was_missed(interval_trigger("6h"), now - timedelta(hours=7), now)
    assert not was_missed(interval_trigger("6h"), now - timedelta(hours=5), now)
