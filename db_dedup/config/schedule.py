"""When `db-dedup run` scans: `[schedule]` of `dedup.toml`."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from db_dedup.config.fields import Frozen, Name, Words, check_known
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.setting_faults import first_fault
from db_dedup.translation import Phrase


class ScheduleSettings(Frozen):
    """When to scan which tables; one of `cron` and `every` is set.

    Attributes:
        cron: minute, hour, day, month, weekday, as in a crontab.
        every: an interval: 30m, 6h, 1d.
        timezone: in which `cron` counts, as Asia/Shanghai; None for the machine's.
        tables: to scan; none for all of the file.
    """

    cron: Name | None = None
    every: Name | None = None
    timezone: Name | None = None
    tables: Words = ()


def schedule_settings(section: Mapping[str, Any], tables: Collection[str], path: Path) -> ScheduleSettings:
    """Check the settings of `[schedule]`.

    Args:
        section: as TOML gives it.
        tables: of the file.
        path: the settings file.

    Raises:
        ConfigError: a setting is unknown or wrong.
    """
    check_known(Phrase("setting in [schedule]"), section, set(ScheduleSettings.model_fields))
    values = dict(section)
    if isinstance(values.get("tables"), list):
        values["tables"] = tuple(values["tables"])
    try:
        schedule = ScheduleSettings.model_validate(values)
    except ValidationError as error:
        fault = first_fault(error, ScheduleSettings)
        raise ConfigError("{path}: [schedule]: {fault}", path=path, fault=fault) from None
    if (schedule.cron is None) == (schedule.every is None):
        raise ConfigError(
            "{path}: [schedule] says when to scan: either cron = '0 2 * * *' or every = '6h'", path=path
        )
    if schedule.timezone is not None and schedule.cron is None:
        raise ConfigError(
            "{path}: [schedule]: an interval has no time zone: leave timezone out, or set cron", path=path
        )
    for name in schedule.tables:
        if name not in tables:
            raise UnknownNameError(Phrase("table in [schedule]"), name, tables)
    return schedule
