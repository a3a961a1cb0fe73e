"""The OpenAPI document, and a plain page of it that needs no other file and no script."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from html import escape
from typing import Any, Final

from db_dedup.present.html_page import page, table
from db_dedup.web.models import ProblemAnswer
from db_dedup.web.problems import MEDIA_TYPE, PROBLEMS

_METHODS: Final = ("get", "post", "delete")
_DONE: Final = ("200", "201")
_SCHEMAS: Final = "#/components/schemas/"
_CURL: Final = (
    'curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" '
    '-d \'{"record": {"title": "..."}}\' http://127.0.0.1:8765/v1/tables/petitions/check'
)


def finished_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return FastAPI's document with our form of errors instead of its own."""
    finished = deepcopy(dict(document))
    schemas = finished.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    of_errors = ProblemAnswer.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}")
    for name, schema in of_errors.pop("$defs", {}).items():
        schemas.setdefault(name, schema)
    schemas["Problem"] = of_errors
    of_problem = {
        "description": "A problem: see /v1/docs.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"{_SCHEMAS}Problem"}}},
    }
    for _, _, operation in _operations(finished):
        operation["responses"].pop("422", None)
        operation["responses"]["default"] = of_problem
    return finished


def docs_page(document: Mapping[str, Any]) -> str:
    """Return the page."""
    info = document["info"]
    shown: set[str] = set()
    parts = [
        f"<p>{escape(info['description'])}</p>",
        '<p>For programs: <a href="/v1/openapi.json">/v1/openapi.json</a> (OpenAPI).</p>',
        f"<pre>{escape(_CURL)}</pre>",
    ]
    for path, method, operation in _operations(document):
        parts.append(f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(_words(operation))}</p>")
        parts.extend(_parameters(operation))
        for title, name in _objects(operation):
            shown.add(name)
            parts.extend(_fields(document, name, title))
    for name in sorted(document["components"]["schemas"].keys() - shown):
        parts.append(f"<h2>{escape(name)}</h2>")
        parts.extend(_fields(document, name, "member"))
    parts.append("<h2>Problems</h2><dl>")
    parts.extend(
        f'<dt id="{kind.name}">{kind.status} {kind.name}</dt><dd>{escape(kind.title)}</dd>'
        for kind in PROBLEMS
    )
    parts.append("</dl>")
    return page(f"{info['title']} {info['version']}", parts, "en")


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield path, method, methods[method]


def _words(operation: Mapping[str, Any]) -> str:
    return str(operation.get("description") or operation.get("summary", ""))


def _parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    found = operation.get("parameters", [])
    if found:
        rows = (
            (p["name"], p["in"], "yes" if p.get("required") else "", p.get("description", "")) for p in found
        )
        yield table(("parameter", "in", "required", "meaning"), rows)


def _objects(operation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (what it is, the name of its class) of the body of a request, and of its answer."""
    answers = operation.get("responses", {})
    answer: Mapping[str, Any] = next((answers[status] for status in _DONE if status in answers), {})
    for title, holder in (("body", operation.get("requestBody", {})), ("answer", answer)):
        schema = holder.get("content", {}).get("application/json", {}).get("schema", {})
        if "$ref" in schema:
            yield title, _type(schema)


def _fields(document: Mapping[str, Any], name: str, title: str) -> Iterator[str]:
    """Yield a table of the fields of a class."""
    fields = document["components"]["schemas"][name].get("properties", {})
    if fields:
        rows = ((field, _type(value), value.get("description", "")) for field, value in fields.items())
        yield table((title, "type", "meaning"), rows)


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
