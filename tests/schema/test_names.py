import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.errors import ConfigError
from db_dedup.records.names import Namespace, fit_name, view_name

limits = st.sampled_from([(63, True), (64, False), (None, False)])


def test_short_names_stay_as_they_are() -> None:
    assert Namespace("dedup", "").name("pair") == "pair"
    assert Namespace(None, "dedup_").name("pair") == "dedup_pair"
    view = view_name(Namespace(None, "dedup_"), "信访件", 63, limit_counts_bytes=True)
    assert view == "dedup_duplicates_of_信访件"


def test_a_namespace_without_schema_and_prefix_is_refused() -> None:
    with pytest.raises(ConfigError, match="prefix may not be empty"):
        Namespace(None, "")


def test_a_long_name_keeps_its_beginning_and_ends_in_eight_digits() -> None:
    fitted = fit_name("a" * 100, 63, limit_counts_bytes=True)
    assert fitted[:55] == "a" * 54 + "_"
    assert len(fitted) == 63
    assert int(fitted[55:], 16) >= 0


def test_a_character_is_never_cut_in_two() -> None:
    # 54 bytes are 18 characters of 3 bytes; one byte more in front leaves 17 and two bytes of the 18th.
    fitted = fit_name("x" + "访" * 40, 63, limit_counts_bytes=True)
    assert fitted[:-9] == "x" + "访" * 17


@given(name=st.text(min_size=1, max_size=200), limit=limits)
def test_every_name_fits(name: str, limit: tuple[int | None, bool]) -> None:
    most, counts_bytes = limit
    fitted = fit_name(name, most, limit_counts_bytes=counts_bytes)
    if most is None:
        assert fitted == name
    else:
        assert len(fitted.encode() if counts_bytes else fitted) <= most


@given(
    beginning=st.text(min_size=64, max_size=80), ends=st.sets(st.text(max_size=5), min_size=2), limit=limits
)
def test_names_that_begin_alike_stay_different(
    beginning: str, ends: set[str], limit: tuple[int | None, bool]
) -> None:
    most, counts_bytes = limit
    assert len({fit_name(beginning + end, most, limit_counts_bytes=counts_bytes) for end in ends}) == len(
        ends
    )
