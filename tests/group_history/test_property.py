"""Whatever is done to the rows, an old id leads to the groups in which the rows of its group are now."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.group_history.recorded import BODIES, OTHER_SETTINGS, Recorded
from tests.servers import Database
from tests.worker.watched import Watched

KEYS = st.integers(1, 9)
STEPS = st.one_of(
    st.tuples(st.just("write"), KEYS, st.sampled_from(BODIES), st.integers(1, 9)),
    st.tuples(st.just("write"), KEYS, st.sampled_from(BODIES), st.integers(1, 9)),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("delete"), KEYS, KEYS),
    st.tuples(st.just("move"), KEYS, KEYS),
    st.tuples(st.just("work")),
    st.tuples(st.just("scan")),
    st.tuples(st.just("switch"), st.sampled_from(OTHER_SETTINGS)),
)
FIRST = st.lists(st.sampled_from(BODIES), min_size=5, max_size=9)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(FIRST, st.lists(STEPS, min_size=3, max_size=14))
def check(watched: Watched, first: list[str], steps: list[tuple[Any, ...]]) -> None:
    recorded = Recorded(watched)
    for number, body in enumerate(first, 1):
        recorded.write(number, body)
    for what, *values in [("work",), *steps, ("work",)]:
        getattr(recorded, what)(*values)
    assert Counter(recorded.written()) == Counter(change for step in recorded.noted for change in step)
    ids = {group for partition in recorded.seen for group in partition.values()}
    for group_id in ids:
        history = recorded.dedup.group_history(group_id)
        assert {group.group_id for group in history.groups} == recorded.expected_groups(group_id)
        assert history.is_known


def test_every_old_id_leads_to_its_rows(database: Database) -> None:
    check(Watched.make(database.engine, 0))
