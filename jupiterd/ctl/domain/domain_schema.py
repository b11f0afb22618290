"""The JSON Schema of domain files, for editors.

Owns its format. Takes the descriptions of keys from the docstrings below the models' fields.
pydantic could read them itself, but that would slow down every start.
"""

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from jupiterd.cycle.base.strict_model import StrictModel
from jupiterd.cycle.domain.domain import Domain

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

Node = dict[str, Any]


def domain_schema() -> str:
    """Return the schema as JSON text; the same models give the same text."""
    schema: Node = Domain.model_json_schema()
    classes = {kind.__name__: kind for kind in _kinds(StrictModel)}
    for name, node in [("Domain", schema), *schema.get("$defs", {}).items()]:
        _describe(node, classes[name])
    described = {"$schema": _DIALECT, "title": "A domain of Jupiter", **schema}
    described["title"] = "A domain of Jupiter"
    return json.dumps(described, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _describe(node: Node, kind: type[StrictModel]) -> None:
    node["description"] = (inspect.getdoc(kind) or "").split("\n\n")[0]
    descriptions = {
        name: text
        for each in reversed(kind.__mro__)
        for name, text in _field_docstrings(each).items()
    }
    for name, field in node.get("properties", {}).items():
        if name in descriptions:
            field["description"] = descriptions[name]


def _kinds(kind: type[StrictModel]) -> Iterator[type[StrictModel]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _field_docstrings(kind: type) -> Mapping[str, str]:
    """Return field -> the docstring below it, for the fields that this class itself defines."""
    if not issubclass(kind, StrictModel) or kind is StrictModel:
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            found.update(_docstrings(node.body))
    return found


def _docstrings(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text).replace("\n", " ")
            case _:
                pass
