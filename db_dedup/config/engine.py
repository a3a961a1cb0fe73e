"""The settings of the engine that scans: `[engine]` of `dedup.toml`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from db_dedup.config.fields import Count, Frozen, Name, Words, check_known
from db_dedup.errors import ConfigError
from db_dedup.setting_faults import first_fault
from db_dedup.translation import Phrase


class EngineSettings(Frozen):
    """Which engine scans, and what it needs; worker and checks always use the embedded engine.

    Attributes:
        name: of the engine; None for the default.
        matching_mb: megabytes for the search for pairs by the embedded engine; None for the default.
        master: the URL of the master of a cluster, as Spark writes it.
        jars: files with JDBC drivers, or URLs of such.
        partitions: into how many parts a table is divided; by default two for each core of the
            cluster, more for a large table.
        options: of the session of Spark, as `spark.executor.memory`.
    """

    name: Name | None = None
    matching_mb: Count | None = None
    master: Name | None = None
    jars: Words = ()
    partitions: Count | None = None
    options: Annotated[Mapping[str, str], Field(description="a section of texts")] = {}

    def given(self) -> list[str]:
        """Return the names of the settings, beside the engine's own name, that were given."""
        return [name for name in type(self).model_fields if name != "name" and getattr(self, name)]


def engine_settings(section: Mapping[str, Any], folder: Path) -> EngineSettings:
    """Check the settings of a file.

    Args:
        section: `[engine]`.
        folder: of the file; the paths of jars begin there.

    Raises:
        ConfigError: a setting is unknown or wrong.
    """
    check_known(Phrase("setting in [engine]"), section, set(EngineSettings.model_fields))
    settings = dict(section)
    if isinstance(settings.get("jars"), list):
        settings["jars"] = tuple(_beside(folder, jar) for jar in settings["jars"])
    try:
        return EngineSettings.model_validate(settings)
    except ValidationError as error:
        raise ConfigError("[engine]: {fault}", fault=first_fault(error, EngineSettings)) from None


def _beside(folder: Path, jar: Any) -> Any:
    return str(folder / jar) if isinstance(jar, str) and "://" not in jar else jar
