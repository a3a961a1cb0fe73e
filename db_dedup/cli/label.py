"""`db-dedup label`: people say of pairs whether they are duplicates, and it is remembered."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from db_dedup.app import Deduplicator
from db_dedup.app.table_labels import TableLabels
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    MOST,
    Config,
    DuplicateLabel,
    Full,
    StoreUrl,
    TableName,
    Url,
    is_given,
    open_table,
)
from db_dedup.cli.shared.output import Format, FormatOption, print_rows
from db_dedup.cli.shared.terminal import TerminalProgress, has_colour, say
from db_dedup.errors import ConfigError
from db_dedup.jobs.review.label_file import read_labels
from db_dedup.plurals import counted
from db_dedup.present.label_words import uncounted_lines
from db_dedup.present.side_by_side import beside, mark_differences
from db_dedup.present.visible import one_line, visible
from db_dedup.records import LabelOutcome, PairLabel, Question
from db_dedup.translation import tr

LABEL_COLUMNS: Final = ("key_a", "key_b", "label", "decided_at")
_FOUND: Final = (
    "{place}: {distance} of 64 bits differ, similarity {similarity:.3f}; the rule finds it; {reason}"
)
_NOT_FOUND: Final = (
    "{place}: {distance} of 64 bits differ, similarity {similarity:.3f}; the rule does not find it; {reason}"
)
_UNDONE_DUPLICATES: Final = "label removed: rows {key_a!r} and {key_b!r} are duplicates"
_UNDONE_NO_DUPLICATES: Final = "label removed: rows {key_a!r} and {key_b!r} are no duplicates"
_PROMPT: Final = "duplicates? y yes, n no, s skip, u undo, q quit: "


def label(
    context: typer.Context,
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    limit: Annotated[
        int, typer.Option(envvar="DB_DEDUP_LIMIT", min=1, max=MOST, help="Offer at most so many pairs.")
    ] = 50,
    undo: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--undo",
            envvar="DB_DEDUP_UNDO",
            metavar="KEY_A KEY_B",
            help="Withdraw the label of two rows.",
            show_default=False,
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", envvar="DB_DEDUP_LIST", help="Print the stored labels and ask nothing.")
    ] = False,
    answers: Annotated[
        Path | None,
        typer.Option(
            envvar="DB_DEDUP_ANSWERS",
            help="Take the answers from a CSV file: key_a, key_b, label.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    duplicate_label: DuplicateLabel = None,
    full: Full = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Offer pairs of TABLE that tell most about the rule, and remember whether they are duplicates.

    A rejected pair stays rejected until either text changes.
    """
    if sum(is_given(context, name) for name in ("listed", "undo", "answers")) > 1:
        raise ConfigError("--list, --undo and --answers are different tasks: give one of them")
    if not (listed or undo or answers):
        # The bars are gone before the first question.
        with TerminalProgress() as progress, open_table(config, url, table, progress, store_url) as dedup:
            questions, columns = dedup.labels().questions(limit), dedup.texts().columns
    with open_table(config, url, table, store=store_url) as dedup:
        labels = dedup.labels()
        if listed:
            _print(labels, form)
        elif undo:
            withdrawn = labels.withdraw(*undo)
            _tell_undone(dedup, undo, withdrawn, len(labels.stored()))
            _fail_if(withdrawn.withdrawn is None)
        elif answers:
            given = labels.give(read_labels(answers, duplicate_label or ()))
            _tell(dedup, [given])
            _fail_if(bool(given.faults or given.exact_duplicates) and not given.kept)
        else:
            _tell(dedup, _Session(labels, columns, full).ask(questions))


def _fail_if(nothing_done: bool) -> None:
    """End the command with exit code 1 if it could do nothing of what it was asked for."""
    if nothing_done:
        raise typer.Exit(1)


def _print(labels: TableLabels, form: Format) -> None:
    rows = ((v.key_a, v.key_b, "yes" if v.is_duplicate else "no", v.decided_at) for v in labels.stored())
    print_rows(LABEL_COLUMNS, rows, form)


class _Session:
    """Asks questions at the terminal and stores the answers."""

    def __init__(self, labels: TableLabels, columns: Sequence[str], full: bool) -> None:
        self._labels, self._columns = labels, [visible(name) for name in columns]
        self._full = full
        self._console = Console(highlight=False)

    def ask(self, questions: Sequence[Question]) -> list[LabelOutcome]:
        """Ask until all are answered or the user quits; each answer is stored at once."""
        given: list[LabelOutcome | None] = []
        while len(given) < len(questions):
            self._show(
                questions[len(given)],
                tr("{number} of {count}", number=len(given) + 1, count=len(questions)),
            )
            match _answer():
                case "y" | "n" as said:
                    given.append(self._give(questions[len(given)], is_duplicate=said == "y"))
                case "s":
                    given.append(None)
                case "u" if given:
                    if given.pop() is not None:
                        self._withdraw(questions[len(given)])
                case "u":
                    say("nothing to undo")
                case "q":
                    break
        return [one for one in given if one is not None]

    def _give(self, question: Question, is_duplicate: bool) -> LabelOutcome:
        return self._labels.give([PairLabel(question.key_a, question.key_b, is_duplicate)], question.judged)

    def _withdraw(self, question: Question) -> None:
        for fault in self._labels.withdraw(question.key_a, question.key_b, question.judged).faults:
            say(fault)

    def _show(self, question: Question, place: str) -> None:
        colour = has_colour(self._console)
        texts = zip(self._columns, question.texts_a, question.texts_b, strict=True)
        rows = [
            (name, *mark_differences(one_line(a), one_line(b), colour, self._full)) for name, a, b in texts
        ]
        self._console.print(
            beside(tr("row {key}", key=question.key_a), tr("row {key}", key=question.key_b), rows)
        )
        line = tr(
            _FOUND if question.is_found else _NOT_FOUND,
            place=place,
            distance=question.distance,
            similarity=question.similarity,
            reason=question.reason,
        )
        self._console.print(Text(visible(line)), soft_wrap=True)


def _answer() -> str:
    """Return one key if stdin is a terminal, else the first letter of a line; the end of the input is q."""
    while True:
        say(_PROMPT)
        try:
            said = typer.getchar() if sys.stdin.isatty() else sys.stdin.readline() or "q"
        except EOFError:  # Ctrl-D; on Windows it is a character
            said = "\x04"
        letter = said.strip()[:1].casefold()
        if letter and letter in "ynsuq":
            return letter
        if said == "\x04":
            return "q"


def _tell(dedup: Deduplicator, given: Sequence[LabelOutcome]) -> None:
    for fault in (fault for one in given for fault in one.faults):
        say(fault)
    for line in (line for one in given for line in uncounted_lines(one)):
        say(line)
    say("{labels} stored", labels=counted(sum(one.kept for one in given), "label"))
    _tell_what_follows(dedup, given)


def _tell_undone(dedup: Deduplicator, keys: tuple[str, str], given: LabelOutcome, kept: int) -> None:
    """Report the label that was removed, and how many labels there are now."""
    for fault in given.faults:
        say(fault)
    if given.withdrawn is not None:
        template = _UNDONE_DUPLICATES if given.withdrawn else _UNDONE_NO_DUPLICATES
        say(template, key_a=keys[0], key_b=keys[1])
    say("{labels} stored now", labels=counted(kept, "label is", "labels are"))
    _tell_what_follows(dedup, [given])


def _tell_what_follows(dedup: Deduplicator, given: Sequence[LabelOutcome]) -> None:
    if not any(one.changes_answer for one in given):
        return
    if any(one.is_queued for one in given):
        say("the worker makes the groups follow: `db-dedup worker {name}`", name=dedup.name)
    else:
        say("the next scan makes the groups follow: `db-dedup scan {name}`", name=dedup.name)
