"""Finds the messages in the code: an extractor for Babel that knows our forms of calls.

A message is the first argument of `tr`, `Phrase` and `say`, of an error, and of a step of a progress bar; the
nouns of `counted`; the help of a command and of its options; and what a setting takes. The argument may be
the name of a constant, or a choice between several.
"""

import ast
import inspect
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from db_dedup.cli.commands import COMMANDS
from db_dedup.errors import MissingExtraError
from db_dedup.jobs.objects.attachment import AttachmentState
from db_dedup.present.named_differences import SORTS
from db_dedup.records import TableStatus
from db_dedup.store.scans import FAILED, FINISHED, RUNNING
from db_dedup.translation import CONSOLE, RULE, SORT, STATUS

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "db_dedup"
CONSOLE_WORDS: Final = PACKAGE / "web" / "console" / "words.toml"
_TEMPLATES: Final = {"tr", "say", "_say", "_filled", "Phrase", "start", "ended", "heading", "paragraph"}
"""Functions whose first argument is a message."""
_SECOND: Final = {"RefusedError": 1, "ended": 1}
"""Those of which it is the second argument."""
_HELP: Final = {"Option": "help", "Argument": "help", "Typer": "help", "Field": "description"}
"""Functions with a keyword that is a message."""
OF_TYPER: Final = (
    "(dynamic)",
    "Aborted!",
    "default: {default}",
    "required",
    "env var: {var}",
    "Arguments",
    "Options",
    "Commands",
    "Missing command.",
    "No such command {name!r}.",
    "(deprecated) ",
    "[default: {}]",
    "[env var: {}]",
    "[required]",
    "Error",
    "Aborted.",
    "Show this message and exit.",
    "Install completion for the current shell.",
    "Show completion for the current shell, to copy it or customize the installation.",
    "Try [blue]'{command_path} {help_option}'[/] for help.",
)
"""Words of the parser of the command line: it translates most of them by gettext itself."""


_FOR_PROGRAMS: Final = ("db_dedup/web/models.py",)
"""Its descriptions and errors are for clients of the HTTP API, which stays English."""
_SEPARATORS: Final = (", ", "; ")
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    RULE: (
        *("simhash", "minhash bands", "passage hashes", "grams of short texts", "within", "exclude_kinds"),
        *("numbers", "rejected", "edit_similarity", "long_grams", "word_jaccard", "char_jaccard"),
        *("char_overlap", "overlap", "cosine"),
    ),
    SORT: SORTS,
    STATUS: (
        *(field.name for field in fields(TableStatus) if field.name != "table"),
        *("group_sizes", "hot_block", "scan", "frames", RUNNING, FINISHED, FAILED),
        *("measured", "damaged", "missing", "not measured"),
        *AttachmentState,
    ),
}
"""Context -> names of the program that people read."""


class Found(NamedTuple):
    """A message in the code: where it is, and the template, or its singular and plural."""

    file: str
    line: int
    message: str | tuple[str, str]
    context: str | None = None


def all_messages() -> Iterator[Found]:
    """Yield each message of the package, with repetitions, in the order of files and lines."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        with path.open("rb") as file:
            found = list(extract(file, (), (), {"path": path}))
        yield from (Found(name, line, message) for line, _, message, _ in found if name not in _FOR_PROGRAMS)
    for key, words in console_words().items():
        yield Found(CONSOLE_WORDS.relative_to(ROOT).as_posix(), 0, words, f"{CONSOLE} {key}")
    for context, names in NAMES.items():
        for name in names:
            yield Found("names", 0, name, context)
    for message in (*_SEPARATORS, *OF_TYPER):
        yield Found("typer", 0, message)


def console_words() -> Mapping[str, str]:
    """Return section.key -> the English words of the console."""
    sections: dict[str, dict[str, str]] = tomllib.loads(CONSOLE_WORDS.read_text(encoding="utf-8"))
    return {f"{section}.{key}": words for section, keys in sections.items() for key, words in keys.items()}


def extract(
    file: IO[bytes], _keywords: object, _comment_tags: object, options: Mapping[str, Any]
) -> Iterator[tuple[int, str, Any, list[str]]]:
    """Yield (line, function, message or messages, comments) as Babel asks for them."""
    path = Path(options["path"])
    tree = ast.parse(file.read())
    constants = _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for message in _of_call(node, constants):
                yield node.lineno, _name(node), message, []
    if path.parent.name == "cli" and path.stem in COMMANDS:
        yield from _of_command(path.stem, tree)
    if path.name == "commands.py":
        yield from ((1, "COMMANDS", line, []) for line in COMMANDS.values())


def _of_command(name: str, tree: ast.Module) -> Iterator[tuple[int, str, str, list[str]]]:
    """Yield the paragraphs of the help of a command."""
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    for paragraph in inspect.cleandoc(ast.get_docstring(function) or "").split("\n\n"):
        yield function.lineno, name, " ".join(paragraph.split()), []


def _of_call(call: ast.Call, constants: Mapping[str, list[ast.expr]]) -> Iterator[str | tuple[str, str]]:
    name = _name(call)
    if name == "counted":
        yield from _nouns(call.args[1:], constants)
    elif name in _TEMPLATES or _is_error(name) or _is_init_of_base(call):
        place = _SECOND.get(name, 0)
        texts = [text for argument in call.args[place : place + 1] for text in _texts(argument, constants)]
        yield from (text for text in texts if _without_fields(text).strip())
    elif name in _HELP:
        values = (k.value for k in call.keywords if k.arg == _HELP[name])
        yield from (text for value in values for text in _texts(value, constants))


def _nouns(arguments: list[ast.expr], constants: Mapping[str, list[ast.expr]]) -> Iterator[tuple[str, str]]:
    one, *many = (list(_texts(argument, constants)) for argument in arguments)
    for i, noun in enumerate(one):
        yield f"{{amount:,}} {noun}", f"{{amount:,}} {many[0][i] if many else noun + 's'}"


def _name(call: ast.Call) -> str:
    function = call.func
    return str(getattr(function, "attr", None) or getattr(function, "id", ""))


def _is_error(name: str) -> bool:
    return name.endswith("Error") and name != MissingExtraError.__name__  # made of names, not of a template


def _is_init_of_base(call: ast.Call) -> bool:
    return _name(call) == "__init__" and "super" in ast.unparse(call.func)


def _constants(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Return name -> what is assigned to it anywhere in the module, or what it runs through."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        for target, value in pairs:
            for name, part in _unpacked(target, value):
                found.setdefault(name, []).append(part)
    return found


def _unpacked(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name) and value is not None:
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, part in zip(target.elts, value.elts, strict=False):
            yield from _unpacked(one, part)


def _texts(node: ast.expr, constants: Mapping[str, list[ast.expr]]) -> Iterator[str]:
    """Yield the constant texts that an expression can be."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp():
            yield from _texts(node.body, constants)
            yield from _texts(node.orelse, constants)
        case ast.Name():
            others = {name: parts for name, parts in constants.items() if name != node.id}
            for part in constants.get(node.id, ()):
                yield from _texts(part, others)
        case ast.Dict():
            for part in node.values:
                yield from _texts(part, constants)
        case ast.Subscript():
            yield from _texts(node.value, constants)


def _without_fields(text: str) -> str:
    """Return what a template says besides its fields."""
    said, depth = [], 0
    for character in text:
        depth += (character == "{") - (character == "}")
        said.append(character if not depth and character not in "{}" else " ")
    return "".join(said)
