"""The Spark engine: it scans, on several machines. Worker and checks run with the embedded engine."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from db_dedup.config import EngineSettings, WatchedTable
from db_dedup.engines.scans_only import ScansOnly
from db_dedup.errors import ConfigError
from db_dedup.extras import require
from db_dedup.records import Family
from db_dedup.records.recipe import Recipe

if TYPE_CHECKING:
    from db_dedup.engines.spark.table_scan import SparkScan

_EXTRA = "spark"


class SparkEngine(ScansOnly):
    """Finds duplicates on a cluster. See `engines.base.Engine` for the methods."""

    name = "spark"

    def __init__(self, settings: EngineSettings) -> None:
        """Check that everything is there, without starting Spark.

        Raises:
            MissingExtraError: PySpark is not installed.
            ConfigError: there is no Java, no master is named, or the jar of a driver is not there.
            ClusterUnavailableError: the master does not answer.
        """
        require("pyspark", _EXTRA)
        require("pyarrow", _EXTRA)
        from db_dedup.engines.spark import session  # noqa: PLC0415 - it needs the extra

        if settings.master is None and not session.is_active():
            raise ConfigError(
                "the Spark engine needs a master: --master spark://host:7077, or master in [engine]; "
                "local[*] runs on this machine"
            )
        session.check_jars(settings.jars)
        session.check_java()
        if settings.master is not None:
            session.check_master(settings.master)
        self._settings = settings

    @contextmanager
    def scan(
        self,
        watched: WatchedTable,
        recipe: Recipe,
        key_families: Sequence[Family],
        row_count: int,
    ) -> Iterator["SparkScan"]:
        """Yield a pass over a table; its session ends with the block."""
        from db_dedup.engines.spark.table_scan import SparkScan  # noqa: PLC0415 - it needs the extra

        with ExitStack() as resources:
            yield SparkScan(watched, recipe, key_families, row_count, self._settings, resources)
