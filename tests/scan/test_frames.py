"""The frozen list of frames: measured before the first page of a scan, stored with its recipe."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from db_dedup import Deduplicator, PairLabel
from db_dedup.errors import FrameListError
from db_dedup.flow.text.frames import measure_frames
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.jobs.scan.frames import DRIFT_CHARACTERS, FrameSample
from db_dedup.jobs.scan.full_scan import FullScan
from db_dedup.jobs.scan.reading import TableReading
from db_dedup.records.recipe import RecipeColumn
from db_dedup.store.answers import view
from tests.forms import (
    FORM,
    OTHER_FORM,
    edited,
    in_form,
    letters,
    stored,
    stored_frames,
    texts,
    watch,
    write,
)
from tests.servers import Database


def pairs_of(dedup: Deduplicator) -> set[tuple[str, str]]:
    return {(pair.key_a, pair.key_b) for pair in dedup.pairs()}


def found_at(dedup: Deduplicator) -> dict[tuple[str, str], datetime]:
    pairs = view(dedup.database.tables, "duplicate_pairs", "key_a", "key_b", "found_at")
    with dedup.database.engine.connect() as connection:
        return {(a, b): at for a, b, at in connection.execute(select(pairs))}


def lists(dedup: Deduplicator) -> list[Any]:
    table = dedup.database.tables.frame_list
    with dedup.database.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(table).order_by(table.c.recipe))]


def interrupt(dedup: Deduplicator, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Interrupt a scan where it calls this function."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            dedup.scan()


def form_table(database: Database, **options: Any) -> Deduplicator:
    """300 unlike texts in a form, an edited one and a copy among them, scanned."""
    own = texts(300)
    write(database.engine, in_form([*own, edited(own[7]), own[9]]))
    dedup = watch(database.engine, **options)
    dedup.scan()
    return dedup


def test_a_form_makes_no_pairs(database: Database) -> None:
    dedup = form_table(database)
    assert pairs_of(dedup) == {("8", "301"), ("10", "302")}
    ((_, recipe, digest, rows, sample, _, measured_at),) = lists(dedup)
    assert (recipe, rows, sample) == (stored(dedup).recipe, 302, 301)
    assert digest == stored_frames(dedup).digest
    assert isinstance(measured_at, datetime)
    report = dedup.scan().frames
    assert report is not None
    assert (report.is_measured, report.columns, report.rows, report.drift) == (True, 1, 302, 0.0)
    assert len(lists(dedup)) == 1


def test_without_the_list_all_rows_are_pairs(sqlite_database: Database) -> None:
    dedup = form_table(sqlite_database, frames=False)
    assert len(pairs_of(dedup)) > 1_000
    (stored,) = lists(dedup)
    assert json.loads(stored[5])["columns"] == [], "the common 3-grams are measured, frames are not"


def test_checks_and_workers_use_the_list(sqlite_database: Database) -> None:
    dedup = form_table(sqlite_database)
    own = texts(300)
    check = watch(sqlite_database.engine).check
    assert [match.row_key for match in check({"body": FORM.format(text=edited(own[20]))})] == ["21"]
    assert check({"body": FORM.format(text=texts(1, seed=2)[0])}) == []
    (pair,) = [pair for pair in dedup.pairs() if pair.distance]
    again = {match.row_key: match.similarity for match in check({"body": FORM.format(text=edited(own[7]))})}
    assert again == {"301": 1.0, "8": pair.similarity}
    dedup.attach()
    dedup.scan()
    write(sqlite_database.engine, in_form([edited(own[30]), texts(1, seed=3)[0]]), first=400)
    worker = dedup.worker()
    while worker.step():
        pass
    assert pairs_of(dedup) == {("8", "301"), ("10", "302"), ("31", "400")}
    assert dedup.verify().is_right


def test_pairs_of_abridged_groups_are_compared_without_frames(sqlite_database: Database) -> None:
    own = texts(250)
    write(sqlite_database.engine, in_form([*own, *(own[0][:i] + own[0][i + 2 :] for i in (3, 9, 15, 21))]))
    dedup = watch(sqlite_database.engine, abridge_above=2)
    dedup.scan()
    assert len(pairs_of(dedup)) == 4
    expanded = set(dedup.pairs(expand=True))
    assert len(expanded) == 10
    whole = watch(sqlite_database.engine, abridge_above=1000)
    whole.scan()
    assert set(whole.pairs()) == expanded


def test_labels_are_kept_when_the_list_changes(sqlite_database: Database) -> None:
    dedup = form_table(sqlite_database)
    dedup.labels().give([PairLabel("8", "301", is_duplicate=False)])
    dedup.scan()
    assert pairs_of(dedup) == {("10", "302")}
    recipe = stored(dedup).recipe
    write(sqlite_database.engine, in_form(texts(300, seed=2), OTHER_FORM), first=1001)
    dedup.scan()
    assert stored(dedup).recipe != recipe
    assert pairs_of(dedup) == {("10", "302")}
    assert len(dedup.labels().stored()) == 1
    asked = {(question.key_a, question.key_b) for question in dedup.labels().questions(50)}
    assert len(asked) <= 1, "unlike texts in one form are no questions"


def test_too_few_rows_are_not_measured(sqlite_database: Database) -> None:
    write(sqlite_database.engine, in_form(texts(199)) * 2)
    dedup = watch(sqlite_database.engine)
    report = dedup.scan().frames
    assert report is not None
    assert (report.is_measured, report.grams) == (False, 0)
    write(sqlite_database.engine, in_form(texts(1, seed=2)), first=400)
    report = dedup.scan().frames
    assert report is not None
    assert report.is_measured
    assert report.rows == 399


@pytest.mark.parametrize(("copies", "framed"), [(200, 0), (75, 25)])
def test_a_letter_is_no_frame_if_most_senders_copy_it(
    sqlite_database: Database, copies: int, framed: int
) -> None:
    """A sentence is added by 25 of 225 senders: less than a fifth. Of 100 senders, it is more."""
    letter, *own = texts(300)
    longer = [letter + text[:30] for text in texts(25, seed=4)]
    write(sqlite_database.engine, [*own, *[letter] * copies, *longer])
    dedup = watch(sqlite_database.engine)
    report = dedup.scan().frames
    assert report is not None
    assert report.rows == framed
    (group,) = dedup.groups()
    assert group.size == copies + 25 - framed
    assert dedup.verify().is_right


def test_drift_builds_a_new_recipe_and_keeps_when_pairs_were_found(database: Database) -> None:
    dedup = form_table(database)
    before, recipe, old = found_at(dedup), stored(dedup).recipe, stored_frames(dedup)
    own = texts(300, seed=2)
    write(database.engine, in_form([*own, edited(own[5])], OTHER_FORM), first=1001)
    dedup.scan()
    assert stored(dedup).recipe != recipe
    assert stored_frames(dedup) != old
    after = found_at(dedup)
    assert after.keys() == {*before, ("1006", "1301")}
    assert {pair: after[pair] for pair in before} == before
    assert after["1006", "1301"] > max(before.values())
    assert [row[1] for row in lists(dedup)] == [stored(dedup).recipe]


@pytest.mark.parametrize(("added", "counts"), [(DRIFT_CHARACTERS - 2, False), (DRIFT_CHARACTERS - 1, True)])
def test_a_row_that_is_read_a_little_differently_is_no_drift(added: int, *, counts: bool) -> None:
    """What the old list leaves of the longer form is joined to the text by one more character."""
    column = [RecipeColumn("body", "text", 1)]
    sample = normalise_batch([text + texts(1, seed=3)[0][:added] for text in in_form(texts(250))])
    old, new = (measure_frames(column, [rows]) for rows in (normalise_batch(in_form(texts(250))), sample))
    assert old != new
    taken = FrameSample(250, list(map(str, range(250))), [sample], [1] * 250)
    share = taken.differing_share(old, new)
    assert share == (1 if counts else 0)


def test_a_setting_lets_drift_wait(sqlite_database: Database) -> None:
    dedup = form_table(sqlite_database, frame_drift="wait")
    recipe, old = stored(dedup).recipe, stored_frames(dedup)
    write(sqlite_database.engine, in_form(texts(300, seed=2), OTHER_FORM), first=1001)
    report = dedup.scan().frames
    assert report is not None
    assert (report.has_drifted, report.waits) == (True, True)
    assert (stored(dedup).recipe, stored_frames(dedup)) == (recipe, old)
    assert dedup.verify().is_right
    report = dedup.scan(rebuild=True).frames
    assert report is not None
    assert stored(dedup).recipe != recipe
    assert len(pairs_of(dedup)) == 2


def test_drift_alone_is_no_difference(database: Database) -> None:
    dedup = form_table(database)
    with database.engine.begin() as connection:
        connection.execute(delete(letters).where(letters.c.id.between(100, 299)))
    write(database.engine, in_form(texts(200, seed=2), OTHER_FORM), first=1001)
    found = dedup.verify().frames
    assert found is not None
    assert found.has_drifted
    preview = dedup.preview()
    assert preview.is_new_recipe
    assert preview.report.frames is not None
    assert preview.report.frames.has_drifted


@pytest.mark.parametrize("values", [{"digest": "0" * 64}, {"grams": "[[1]]"}, None])
def test_a_list_that_cannot_be_used_ends_in_one_line(
    sqlite_database: Database, values: dict[str, str] | None
) -> None:
    dedup = form_table(sqlite_database)
    dedup.attach()
    table = dedup.database.tables.frame_list
    with sqlite_database.engine.begin() as connection:
        connection.execute(delete(table) if values is None else update(table).values(**values))
    again = watch(sqlite_database.engine)
    uses = (again.scan, again.verify, again.preview, lambda: again.check({"body": "x"}))
    for use in (*uses, lambda: again.explain("1", "2"), lambda: list(again.pairs(expand=True))):
        with pytest.raises(FrameListError, match="run `db-dedup scan letters --rebuild`"):
            use()
    again.scan(rebuild=True)
    assert pairs_of(again) == {("8", "301"), ("10", "302")}
    assert again.verify().is_right


@pytest.mark.parametrize("point", ["_read", "_switch"])
def test_an_interrupted_scan_goes_on_with_its_list(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    write(sqlite_database.engine, in_form(texts(300)))
    dedup = watch(sqlite_database.engine)

    interrupt(dedup, monkeypatch, FullScan, point)
    (first,) = lists(dedup)
    write(sqlite_database.engine, in_form(texts(300, seed=2), OTHER_FORM), first=1001)
    dedup.scan()
    assert lists(dedup) == [first]
    assert stored(dedup).recipe == first[1]


def test_an_interrupted_change_of_lists_is_resumed(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    dedup = form_table(sqlite_database)
    before = found_at(dedup)
    write(sqlite_database.engine, in_form(texts(300, seed=2), OTHER_FORM), first=1001)

    interrupt(dedup, monkeypatch, TableReading, "rows")
    first, second = lists(dedup)
    assert stored(dedup).recipe == first[1]
    assert pairs_of(dedup) == before.keys(), "the former answer is shown until the new one is whole"
    dedup.scan()
    assert lists(dedup) == [second]
    assert found_at(dedup) == before


def test_each_form_has_one_example_the_most_frequent_first(sqlite_database: Database) -> None:
    """Numbers in a form, and set phrases beside it, do not make it another form."""
    own = [text + ("，位于幸福新城阳光花园" if i % 5 == 0 else "") for i, text in enumerate(texts(400))]
    numbered = FORM.replace("【诉求内容】", "【工单编号】{number}【诉求内容】")
    rows = [numbered.format(text=text, number=70_000 + 37 * i) for i, text in enumerate(own[:300])]
    write(sqlite_database.engine, rows + in_form(own[300:], OTHER_FORM))
    dedup = watch(sqlite_database.engine)
    dedup.scan()
    first, second = dedup.frame_examples()
    assert first.parts[0][0].startswith("【工单来源】市民热线【工单编号】")
    assert second.parts[0][0].startswith("尊敬的领导您好")
    assert len("".join(part for part, _ in first.parts)) < len(FORM) + 45, "a short row shows the form best"


def test_uninstall_leaves_nothing(database: Database) -> None:
    dedup = form_table(database)
    dedup.database.uninstall()
    with database.engine.connect() as connection:
        name = dedup.database.tables.frame_list
        assert not database.engine.dialect.has_table(connection, name.name, schema=name.schema)


def with_phrases(count: int) -> list[str]:
    """Unlike texts of 40 characters, each with one of twenty phrases."""
    phrases = [text[:10] for text in texts(20, seed=9)]
    return [text[:30] + phrases[i % 20] for i, text in enumerate(texts(count))]


def test_an_order_of_common_grams_is_frozen_with_the_list(database: Database) -> None:
    """Scan, worker and check find what brute force finds, and a stored order is used as it is."""
    own = with_phrases(240)
    write(database.engine, own)
    dedup = watch(database.engine, frames=False)
    dedup.attach()
    dedup.scan()
    frozen = stored_frames(dedup)
    assert not frozen.has_frames
    assert frozen.common_grams.size > 100
    with database.engine.begin() as connection:
        connection.execute(delete(letters).where(letters.c.id > 230))
    write(database.engine, [edited(own[3]), edited(edited(own[4]))], first=1001)
    worker = dedup.worker()
    while worker.step():
        pass
    assert {("4", "1001"), ("5", "1002")} <= pairs_of(dedup)
    assert {match.row_key for match in dedup.check({"body": edited(own[3])})} == {"4", "1001"}
    assert dedup.verify().is_right
    dedup.scan()
    assert stored_frames(dedup) == frozen, "an order that is stale is right, and kept"
    found = pairs_of(dedup)
    dedup.scan(rebuild=True)
    assert stored_frames(dedup) != frozen
    assert pairs_of(dedup) == found


def test_a_table_with_few_rows_has_a_fixed_order_until_it_has_enough(sqlite_database: Database) -> None:
    own = with_phrases(260)
    write(sqlite_database.engine, own[:100])
    dedup = watch(sqlite_database.engine)
    dedup.scan()
    recipe = stored(dedup).recipe
    assert stored_frames(dedup).common_grams.size == 0
    write(sqlite_database.engine, own[100:], first=101)
    dedup.scan()
    assert stored(dedup).recipe != recipe
    assert stored_frames(dedup).common_grams.size > 0
    assert dedup.verify().is_right
