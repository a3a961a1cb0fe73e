"""The OpenAPI document, and a plain page of it that needs no other file and no script."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from html import escape
from typing import Any, Final

from db_dedup.present.html_page import page, table
from db_dedup.web.models import ProblemAnswer
from db_dedup.web.problems import MEDIA_TYPE, PROBLEMS

_METHODS: Final = ("get", "post", "delete")
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
    schemas["Problem"] = ProblemAnswer.model_json_schema()
    of_problem = {
        "description": "A problem: see /v1/docs.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for _, _, operation in _operations(finished):
        operation["responses"].pop("422", None)
        operation["responses"]["default"] = of_problem
    return finished


def docs_page(document: Mapping[str, Any]) -> str:
    """Return the page."""
    info = document["info"]
    parts = [
        f"<p>{escape(info['description'])}</p>",
        '<p>For programs: <a href="/v1/openapi.json">/v1/openapi.json</a> (OpenAPI).</p>',
        f"<pre>{escape(_CURL)}</pre>",
    ]
    for path, method, operation in _operations(document):
        parts.append(f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(_words(operation))}</p>")
        parts.extend(_parameters(operation))
        parts.extend(_fields(document, operation))
    parts.append("<h2>Problems</h2><dl>")
    parts.extend(
        f'<dt id="{kind.name}">{kind.status} {kind.name}</dt><dd>{escape(kind.title)}</dd>'
        for kind in PROBLEMS
    )
    parts.append("</dl>")
    return page(f"{info['title']} {info['version']}", parts)


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


def _fields(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of the fields of the body, and one of those of the answer."""
    answer = operation.get("responses", {}).get("200", {})
    for title, holder in (("body", operation.get("requestBody", {})), ("answer", answer)):
        schema = holder.get("content", {}).get("application/json", {}).get("schema", {})
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        fields = document["components"]["schemas"].get(name, {}).get("properties", {})
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
