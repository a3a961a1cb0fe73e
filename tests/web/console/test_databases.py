"""The pages on each database: what their queries read, and a label."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date

import pytest

from db_dedup import Database, Deduplicator
from db_dedup.records.kinds import KINDS
from db_dedup.sample import Sample
from tests.servers import Database as Served
from tests.web.conftest import running, scanned
from tests.web.console.conftest import Visitor
from tests.web.console.test_labels import LABEL, a_group
from tests.web.console.test_pages import GROUPS, listed
from tests.web.console.test_plots import PLOTS, tables


@pytest.fixture
def own(database: Served, sample: Sample) -> Iterator[Database]:
    with closing(scanned(database, sample)) as found:
        yield found


def test_every_page(own: Database) -> None:
    dedup = Deduplicator(own, "petitions")
    groups = {group.group_id: dedup.members(group.group_id) for group in dedup.groups()}
    pairs = list(dedup.pairs())
    with running(own) as client:
        visitor = Visitor(client.port)
        assert f"{len(groups)} groups" in visitor.get("/console").text
        for order in ("size", "newest", "loose"):
            assert sorted(listed(visitor, f"order={order}")) == sorted(groups), order
            for kind in KINDS:
                keys = {pair.key_a for pair in pairs if pair.kind == kind}
                expected = sorted(group for group, members in groups.items() if keys.intersection(members))
                assert sorted(listed(visitor, f"order={order}&kind={kind}")) == expected
        everything = f"loose=no&other_place=no&since=2000-01-01&until={date.max.year - 1000}-01-01"
        assert visitor.get(f"{GROUPS}?{everything}&column=title&value=x").status == 200
        sizes, _, months = tables(visitor.get(PLOTS).text)
        assert sum(int(count.replace(",", "")) for count in sizes.values()) == len(groups)
        assert months
        form = a_group(visitor).forms()[0]
        pair = {form["key_a"], form["key_b"]}
        for action, expected_labels in (("reject", [(pair, False)]), ("undo", [])):
            assert visitor.post(LABEL, {**form, "action": action}).status == 303
            labels = [({label.key_a, label.key_b}, label.is_duplicate) for label in dedup.labels().stored()]
            assert labels == expected_labels
