"""YAML text checked against a pydantic model: every mistake with its line and what was expected.

Owns the limits on the text (size, depth, no aliases), the line of every value and the wording of
mistakes. Doesn't know files, or what any model means.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    NodeEvent,
)
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

MAX_TEXT_BYTES = 256 * 1024
"""A settings file is a page or two; anything larger was given by mistake, or to do harm."""

MAX_DEPTH = 16
"""Levels of nesting; far more than any of our files has, far fewer than a parser can stand."""

Model = TypeVar("Model", bound=BaseModel)
Location = tuple[int | str, ...]
Schema = Mapping[str, Any]


class YamlMistakesError(Exception):
    """The text isn't what it must be; `mistakes` has a line for each, in the order of the file."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = tuple(mistakes)


def parse_yaml(text: str, file_name: str, model: type[Model]) -> Model:
    """Return the text as `model`, which says itself how strictly it reads.

    Raises:
        YamlMistakesError: with every mistake as `file:line: key.path: expected ..., got ...`.
    """
    root = _checked_tree(text, file_name)
    _refuse_duplicate_keys(root, file_name)
    try:
        data: object = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        raise YamlMistakesError([_broken_yaml(error, file_name)]) from error
    try:
        return model.model_validate(data)
    except ValidationError as error:
        schema = model.model_json_schema()
        items = [cast("Mapping[str, Any]", item) for item in error.errors(include_url=False)]
        found = [
            (_line_of(root, item["loc"]), _sentence(schema, item))
            for item in items
            if not _follows_from_another(item, items)
        ]
        raise YamlMistakesError(
            [f"{file_name}:{line}: {sentence}" for line, sentence in sorted(found)]
        ) from error


def parse_value(text: str, name: str) -> object:
    """Return one value as it would stand behind its key, on one line.

    Raises:
        YamlMistakesError: it isn't one.
    """
    if "\n" in text or "\r" in text:
        raise YamlMistakesError([f"{name}: expected a value on one line"])
    line = f"{{value: {text}}}"
    root = _checked_tree(line, name)
    _refuse_duplicate_keys(root, name)
    try:
        data: Any = YAML(typ="safe", pure=True).load(line)
    except (YAMLError, ValueError) as error:
        raise YamlMistakesError([_broken_yaml(error, name)]) from error
    if list(data) != ["value"]:
        raise YamlMistakesError([f"{name}: expected one value, got {text}"])
    return data["value"]


def line_finder(text: str) -> Callable[[Location], int]:
    """Return what says on which line (from 1) a value of a text stands that `parse_yaml` took."""
    root = YAML(typ="safe", pure=True).compose(text)
    return lambda location: _line_of(root, location)


def _checked_tree(text: str, file_name: str) -> Node:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise YamlMistakesError(
            [f"{file_name}:1: expected at most {MAX_TEXT_BYTES // 1024} KiB of text"]
        )
    try:
        _refuse_aliases_and_depth(text, file_name)
        root = YAML(typ="safe", pure=True).compose(text)
    except YAMLError as error:
        raise YamlMistakesError([_broken_yaml(error, file_name)]) from error
    if not isinstance(root, MappingNode):
        raise YamlMistakesError([f"{file_name}:1: expected lines of the form `key: value`"])
    return root


def _refuse_aliases_and_depth(text: str, file_name: str) -> None:
    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
            line = event.start_mark.line + 1
            raise YamlMistakesError(
                [f"{file_name}:{line}: expected plain values, got an anchor or alias (& or *)"]
            )
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            line = event.start_mark.line + 1
            raise YamlMistakesError(
                [f"{file_name}:{line}: expected at most {MAX_DEPTH} levels of nesting"]
            )


def _refuse_duplicate_keys(root: Node, file_name: str) -> None:
    mistakes = [
        f"{file_name}:{line}: {key}: expected each key once, got it a second time"
        for line, key in _duplicate_keys(root)
    ]
    if mistakes:
        raise YamlMistakesError(mistakes)


def _duplicate_keys(node: Node) -> Iterator[tuple[int, str]]:
    if isinstance(node, MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if str(key.value) in seen:
                yield key.start_mark.line + 1, str(key.value)
            seen.add(str(key.value))
            yield from _duplicate_keys(value)
    elif isinstance(node, SequenceNode):
        for value in node.value:
            yield from _duplicate_keys(value)


def _broken_yaml(error: Exception, file_name: str) -> str:
    line, problem = 1, str(error)
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = error.problem or error.context or "something else"
    return f"{file_name}:{line}: expected valid YAML, got: {problem.splitlines()[0]}"


def _line_of(root: Node, location: Location) -> int:
    """Return the line (from 1) of the value at `location`, or of the nearest thing around it."""
    node, line = root, int(root.start_mark.line)
    for step in location:
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if key.value == str(step):
                    node, line = value, int(key.start_mark.line)
                    break
        elif isinstance(node, SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = int(node.start_mark.line)
    return line + 1


def _follows_from_another(item: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a list is only too short because an element of it is wrong."""
    size = len(item["loc"])
    return item["type"] == "too_short" and any(
        len(other["loc"]) > size and other["loc"][:size] == item["loc"] for other in items
    )


def _sentence(schema: Schema, item: Mapping[str, Any]) -> str:
    location = cast("Location", item["loc"])
    if item["type"] == "extra_forbidden":
        around, names = _at(schema, schema, location[:-1])
        keys = ", ".join(around.get("properties", {}))
        path = ".".join(map(str, (*names, location[-1])))
        return f"{path}: expected one of the keys {keys}, got an unknown one"
    here, names = _at(schema, schema, location)
    path = ".".join(map(str, names))
    if item["type"] == "invalid_key":
        return f"{path}: expected keys that are text, got {location[-1]!r}"
    if item["type"] == "value_error":
        return f"{path}: {item['ctx']['error']}"
    if item["type"] == "union_tag_invalid":
        return f"{path}.kind: expected {_expected(here)}, got {item['ctx']['tag']!r}"
    if item["type"] == "union_tag_not_found":
        return f"{path}.kind: expected {_expected(here)}, got nothing"
    got = "nothing" if item["type"] == "missing" else _got(item["input"])
    return f"{path}: expected {_expected(here)}, got {got}"


def _at(root: Schema, schema: Schema, location: Location) -> tuple[Schema, Location]:
    """Return the JSON schema at `location`, and the location without the tags of unions."""
    schema = _resolved(root, schema)
    if not location:
        return schema, ()
    step, rest = location[0], location[1:]
    if "discriminator" in schema and isinstance(step, str):
        chosen = {"$ref": schema["discriminator"]["mapping"][step]}
        return _at(root, chosen, rest)
    inner = (
        schema.get("items", {})
        if isinstance(step, int)
        else schema.get("properties", {}).get(step, {})
    )
    found, names = _at(root, inner, rest)
    return found, (step, *names)


def _resolved(root: Schema, schema: Schema) -> Schema:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return cast("Schema", root["$defs"][name])
    if "anyOf" in schema:
        return _resolved(root, schema["anyOf"][0])
    return schema


def _expected(schema: Schema) -> str:  # noqa: PLR0911 - a table in the form of a function
    if "expected" in schema:
        return str(schema["expected"])
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(map(repr, schema["enum"]))
    if "discriminator" in schema:
        return "one of " + ", ".join(map(repr, schema["discriminator"]["mapping"]))
    if schema.get("type") in {"number", "integer"}:
        return _expected_number(schema)
    if schema.get("type") == "array":
        return _expected_list(schema)
    names = {"string": "text", "boolean": "true or false", "object": "keys and values"}
    return names.get(str(schema.get("type")), "something else")


def _expected_number(schema: Schema) -> str:
    noun = "a whole number" if schema["type"] == "integer" else "a number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{noun} from {low} to {high}"
    return noun if low is None else f"{noun} of at least {low}"


def _expected_list(schema: Schema) -> str:
    low, high = schema.get("minItems", 0), schema.get("maxItems")
    return f"a list of {low} to {high}" if high is not None else "a list"


def _got(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "keys and values"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"a list of {len(value)}"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that isn't finite"
    shown = repr(value) if isinstance(value, str) else str(value).lower()
    return shown if len(shown) <= 60 else shown[:57] + "..."  # a line stays a line
