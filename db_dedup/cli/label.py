"""`db-dedup label`: people say of pairs whether they are duplicates, and it is remembered."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from db_dedup.amounts import counted
from db_dedup.app import Deduplicator
from db_dedup.app.table_verdicts import TableVerdicts
from db_dedup.cli.options import DEFAULT_CONFIG, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.output import Format, FormatOption, print_rows
from db_dedup.cli.side_by_side import beside, has_colour, mark_differences, one_line
from db_dedup.cli.terminal import TerminalProgress, say, visible
from db_dedup.cli.texts import Full
from db_dedup.jobs.label_file import read_labels
from db_dedup.records import GivenVerdicts, PairLabel, Question

LABEL_COLUMNS: Final = ("key_a", "key_b", "label", "decided_at")
_PROMPT: Final = "duplicates? y yes, n no, s skip, u undo, q quit: "

DuplicateLabel = Annotated[
    list[str] | None,
    typer.Option(
        "--duplicate-label",
        envvar="DB_DEDUP_DUPLICATE_LABEL",
        help="What a duplicate is called in the file; every other label then means that two rows are none.",
    ),
]


def label(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    limit: Annotated[
        int, typer.Option(envvar="DB_DEDUP_LIMIT", min=1, help="Offer at most so many pairs.")
    ] = 50,
    undo: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--undo",
            envvar="DB_DEDUP_UNDO",
            metavar="KEY_A KEY_B",
            help="Forget what was said of two rows.",
            show_default=False,
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", envvar="DB_DEDUP_LIST", help="Print what was said, and ask nothing.")
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
    if not (listed or undo or answers):
        # The bars are gone before the first question.
        with TerminalProgress() as progress, open_table(config, url, table, progress, store_url) as dedup:
            questions, columns = dedup.verdicts().questions(limit), dedup.texts().columns
    with open_table(config, url, table, store=store_url) as dedup:
        verdicts = dedup.verdicts()
        if listed:
            _print(verdicts, form)
        elif undo:
            _tell_undone(dedup, undo, verdicts.withdraw(*undo), len(verdicts.standing()))
        elif answers:
            _tell(dedup, [verdicts.give(read_labels(answers, duplicate_label or ()))])
        else:
            _tell(dedup, _Session(verdicts, columns, full).ask(questions))


def _print(verdicts: TableVerdicts, form: Format) -> None:
    rows = ((v.key_a, v.key_b, "yes" if v.is_duplicate else "no", v.decided_at) for v in verdicts.standing())
    print_rows(LABEL_COLUMNS, rows, form)


class _Session:
    """Questions and answers at the terminal."""

    def __init__(self, verdicts: TableVerdicts, columns: Sequence[str], full: bool) -> None:
        self._verdicts, self._columns = verdicts, [visible(name) for name in columns]
        self._full = full
        self._console = Console(highlight=False)

    def ask(self, questions: Sequence[Question]) -> list[GivenVerdicts]:
        """Ask until all are answered or somebody has had enough; each answer is kept at once."""
        given: list[GivenVerdicts | None] = []
        while len(given) < len(questions):
            self._show(questions[len(given)], f"{len(given) + 1} of {len(questions)}")
            match _answer():
                case "y" | "n" as said:
                    given.append(self._give(questions[len(given)], is_duplicate=said == "y"))
                case "s":
                    given.append(None)
                case "u" if given:
                    if given.pop() is not None:
                        self._verdicts.withdraw(questions[len(given)].key_a, questions[len(given)].key_b)
                case "u":
                    say("nothing to undo")
                case "q":
                    break
        return [one for one in given if one is not None]

    def _give(self, question: Question, is_duplicate: bool) -> GivenVerdicts:
        return self._verdicts.give([PairLabel(question.key_a, question.key_b, is_duplicate)], question.judged)

    def _show(self, question: Question, place: str) -> None:
        colour = has_colour(self._console)
        texts = zip(self._columns, question.texts_a, question.texts_b, strict=True)
        rows = [
            (name, *mark_differences(one_line(a), one_line(b), colour, self._full)) for name, a, b in texts
        ]
        self._console.print(beside(f"row {question.key_a}", f"row {question.key_b}", rows))
        found = "the rule finds it" if question.is_found else "the rule does not find it"
        line = (
            f"{place}: {question.distance} of 64 bits differ, similarity {question.similarity:.3f}; "
            f"{found}; {question.reason}"
        )
        self._console.print(Text(visible(line)), soft_wrap=True)


def _answer() -> str:
    """One key where stdin is a terminal, else the first letter of a line; its end is the end of all."""
    while True:
        say(_PROMPT)
        said = typer.getchar() if sys.stdin.isatty() else sys.stdin.readline() or "q"
        letter = said.strip()[:1].casefold()
        if letter and letter in "ynsuq":
            return letter
        if said in ("\x03", "\x04"):
            return "q"


def _tell(dedup: Deduplicator, given: Sequence[GivenVerdicts]) -> None:
    for fault in (fault for one in given for fault in one.faults):
        say(fault)
    say(f"{counted(sum(one.kept for one in given), 'answer')} kept")
    _tell_what_follows(dedup, given)


def _tell_undone(dedup: Deduplicator, keys: tuple[str, str], given: GivenVerdicts, kept: int) -> None:
    """Say what the withdrawn answer was, and how many hold now."""
    for fault in given.faults:
        say(fault)
    if given.withdrawn is not None:
        was = "are duplicates" if given.withdrawn else "are no duplicates"
        say(f"undone: the answer that rows {keys[0]!r} and {keys[1]!r} {was}")
    say(f"{counted(kept, 'answer is', 'answers are')} kept now")
    _tell_what_follows(dedup, [given])


def _tell_what_follows(dedup: Deduplicator, given: Sequence[GivenVerdicts]) -> None:
    if not any(one.changes_answer for one in given):
        return
    if any(one.is_queued for one in given):
        say(f"the worker makes the groups follow: `db-dedup worker {dedup.name}`")
    else:
        say(f"the next scan makes the groups follow: `db-dedup scan {dedup.name}`")
