"""Judge the settings of one table, and the methods of other papers, by labelled pairs."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from db_dedup.app.arguments import iterable_of, labels_of, require, require_said
from db_dedup.app.database import Database
from db_dedup.app.table_access import TableAccess
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.review.labels import labels_for
from db_dedup.jobs.scan.frames import with_frames
from db_dedup.methods.plan import ComparisonPlan
from db_dedup.progress import NullProgress, Progress
from db_dedup.records import Calibration, Comparison, PairLabel, TextPair
from db_dedup.store import watched_tables
from db_dedup.store.labels import StoredLabel
from db_dedup.translation import Phrase


class _ToJudge(NamedTuple):
    context: JobContext
    labels: Sequence[PairLabel] | None
    stored: Sequence[StoredLabel]


class TableJudging:
    """Judges by labelled pairs; nothing is written."""

    def __init__(self, database: Database, access: TableAccess, name: str) -> None:
        self._database, self._access, self._name = database, access, name

    def calibrate(self, labels: Iterable[PairLabel] | None, *, unlabelled_are_wrong: bool) -> Calibration:
        """Return how good the settings are, and which settings are better."""
        from db_dedup.jobs.review.calibration import calibrate  # noqa: PLC0415 - see `Deduplicator.scan`

        with self._database.translate_driver_errors():
            judged = self._to_judge(labels)
            return calibrate(*judged, unlabelled_are_wrong=unlabelled_are_wrong)

    def compare(self, labels: Iterable[PairLabel] | None, plan: ComparisonPlan | None) -> Comparison:
        """Return how well the methods and the rules of the product tell the pairs apart."""
        from db_dedup.jobs.review.comparison import compare_pairs, labelled_rows  # noqa: PLC0415 - the same

        plan = _plan_of(plan)
        with self._database.translate_driver_errors():
            judged = self._to_judge(labels)
            rows = labelled_rows(*judged)
        return compare_pairs(rows, plan, judged.context.progress)

    def _to_judge(self, labels: Iterable[PairLabel] | None) -> _ToJudge:
        given = None if labels is None else labels_of(labels)
        database = self._database
        database.require_schema()
        with database.engine.connect() as connection:
            if stored := watched_tables.find_table(connection, database.tables, self._name):
                stored.require_current()
            context = self._access.context(connection, self._access.settings(connection))
            texts = None if given is None else self._access.labels(connection, given)
        return _ToJudge(with_frames(context, stored), texts, labels_for(context).all)


def compare_methods(
    pairs: Iterable[TextPair], plan: ComparisonPlan | None = None, *, progress: Progress | None = None
) -> Comparison:
    """Return how well methods, and the presets of the product, tell labelled pairs of texts apart.

    Args:
        pairs: labelled pairs of texts, as `TextPair`.
        plan: what to compare; if left out, the methods of the five papers.
        progress: is called for each combination.

    Raises:
        ConfigError: no pair is labelled as a duplicate, or none as no duplicate.
    """
    from db_dedup.jobs.review.comparison import compare_pairs, labelled_texts  # noqa: PLC0415 - the same

    given = list(iterable_of(pairs, "pairs", "TextPair"))
    for pair in given:
        require(pair, TextPair, Phrase("a pair"), Phrase("a TextPair"))
        require(pair.text_a, str, "text_a", Phrase("a text"))
        require(pair.text_b, str, "text_b", Phrase("a text"))
        require_said(pair)
    return compare_pairs(labelled_texts(given), _plan_of(plan), progress or NullProgress())


def _plan_of(plan: ComparisonPlan | None) -> ComparisonPlan:
    if plan is None:
        return ComparisonPlan()
    require(plan, ComparisonPlan, "plan", Phrase("a ComparisonPlan"))
    return plan
