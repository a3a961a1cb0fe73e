"""Errors: a constant template with named fields, which every copy and every process keeps."""

from __future__ import annotations

import copy
import pickle
import shlex
import sys
from pathlib import Path

import pytest

from db_dedup import errors
from db_dedup.errors import ConfigError, DedupError
from db_dedup.translation import Phrase, tr

SPECIAL: dict[str, DedupError] = {
    "UnknownNameError": errors.UnknownNameError(Phrase("table"), "pettitions", ["petitions", "users"]),
    "MissingExtraError": errors.MissingExtraError("psycopg", "postgresql"),
    "FaultyTablesError": errors.FaultyTablesError({"petitions": ConfigError("no {brace}")}),
    "TableGoneError": errors.TableGoneError("petitions", "main.petitions", ["petitions2"]),
    "FrameListError": errors.FrameListError("petitions", "damaged"),
    "DuplicateError": errors.DuplicateError("petitions", [], "row 12"),
    "OutdatedRecipeError": errors.OutdatedRecipeError("petitions", 3, 4),
}
"""Errors of the classes that make their own message."""
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, DedupError)
}


def made(name: str) -> DedupError:
    return SPECIAL.get(name) or KINDS[name]("{path} is no file of {kind!r}", path="{x}", kind="a {kind}")


def unpickled(error: DedupError) -> DedupError:
    other = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert isinstance(other, DedupError)
    return other


def test_a_message_is_its_template_filled_in() -> None:
    error = ConfigError("row {row:,} of {path!r}: {share:.1%}", row=1200, path="{a}.csv", share=0.5)
    assert str(error) == "row 1,200 of '{a}.csv': 50.0%"
    assert error.template == "row {row:,} of {path!r}: {share:.1%}"
    assert error.fields == {"row": 1200, "path": "{a}.csv", "share": 0.5}


@pytest.mark.parametrize("name", ["a b", "it's", "$x", "petitions", "信访件"])
def test_a_name_in_a_command_is_one_word_of_the_shell(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    error = ConfigError("{name!r} (`{name}`) has no triggers: run `db-dedup attach {name}`", name=name)
    for message in (str(error), tr(error.template, **error.fields)):
        before, _, command = message.removesuffix("`").rpartition("`")
        assert before == f"{name!r} (`{name}`) has no triggers: run "
        assert shlex.split(command) == ["db-dedup", "attach", name]
    assert ("'" in command) == (name not in {"petitions", "信访件"})


def test_on_windows_a_name_has_double_quotation_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert str(ConfigError("run `db-dedup attach {name}`", name="a b")) == 'run `db-dedup attach "a b"`'


@pytest.mark.parametrize("message", ['write {"column": "text"}', "{0} {name} {", "}", ""])
def test_a_message_without_fields_is_taken_as_it_is(message: str) -> None:
    error = ConfigError(message)
    assert (str(error), error.template, error.fields) == (message, message, {})


def test_every_name_may_be_a_field() -> None:
    assert str(ConfigError("{self}, {template}", self="a", template="b")) == "a, b"


@pytest.mark.parametrize("name", KINDS)
def test_templates_are_constant(name: str) -> None:
    error = made(name)
    assert error.template.format(**error.fields) == str(error) == error.args[0]


@pytest.mark.parametrize("name", KINDS)
def test_every_error_is_pickled_and_copied(name: str) -> None:
    error = made(name)
    for other in (unpickled(error), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is type(error)
        assert (str(other), other.args) == (str(error), error.args)
        assert (other.template, other.fields) == (error.template, error.fields)
        assert vars(other).keys() == vars(error).keys()


def test_a_field_that_is_no_plain_value_is_pickled_as_its_text() -> None:
    error = ConfigError("{path}: {cause}", path=Path("a"), cause=OSError("gone {x}"))
    other = unpickled(error)
    assert (str(other), other.fields) == ("a: gone {x}", {"path": "a", "cause": "gone {x}"})
