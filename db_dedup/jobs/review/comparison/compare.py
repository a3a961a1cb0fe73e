"""Compare methods and rules on labelled pairs."""

from db_dedup.errors import ConfigError
from db_dedup.jobs.review.comparison.labelled_rows import LabelledRows
from db_dedup.jobs.review.comparison.rules import find_nearest_setting, judge_rules
from db_dedup.methods.comparison import compare_combinations, compare_one
from db_dedup.methods.plan import ComparisonPlan
from db_dedup.methods.registry import METHODS
from db_dedup.progress import Progress
from db_dedup.records.comparison import Comparison


def compare_pairs(given: LabelledRows, plan: ComparisonPlan, progress: Progress) -> Comparison:
    """Try all combinations of a plan and the rules of the product; nothing is written.

    Raises:
        ConfigError: no combination can run; the message has the reason of the first.
    """
    texts = given.texts()
    outcome = compare_combinations(texts, plan, progress)
    if not outcome.trials:
        raise ConfigError(
            "none of the combinations can run; the first one: {reason}", reason=outcome.skipped[0].reason
        )
    rules = tuple(judge_rules(given))
    best = max(outcome.trials, key=lambda trial: trial.best.f1)
    values = compare_one(texts, best.combination)
    decisions = METHODS[best.combination.method].are_alike(values, best.best.threshold)
    return Comparison(
        given.watched.name if given.is_table else None,
        len(given.rows),
        len(given.pairs),
        sum(given.pairs.values()),
        given.not_there,
        outcome.trials,
        outcome.skipped,
        rules,
        best,
        find_nearest_setting(given, best.combination, decisions),
        plan.first,
        given.repeated,
    )
