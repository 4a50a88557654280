"""A tool's parameters as JSON Schema that a server accepts.

Data sets write Python's names for types (``dict``, ``float``, ``any``), leave out the outer
object, or mark a parameter as required where it stands. A server refuses such a schema with the
whole request, so it is repaired where the meaning is plain, and the row rejected where it is not.
"""

import re
from typing import Any, Final

from regen_producer import rejection

DEPTH_MAX: Final = 64

_NAMES: Final = {
    "string": "string str text char character date datetime time",
    "integer": "integer int long short int32 int64",
    "number": "number float double decimal float32 float64",
    "boolean": "boolean bool",
    "array": "array list tuple set sequence arraylist",
    "object": "object dict dictionary map mapping hashmap struct json",
    "null": "null none nonetype",
    "": "any mixed",  # no restriction: in JSON Schema that is no type
}
_TYPES: Final = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_GENERIC = re.compile(r"(?P<base>\w+)\s*(?:\[(?P<inner>.*)\])?", re.DOTALL)
_OPTIONAL = re.compile(r"\s*,\s*optional\s*$|^\s*optional\s*\[(?P<inner>.*)\]\s*$", re.IGNORECASE)

_KEYWORDS: Final = {"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "additionalProperties"}
_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE: Final = (
    "items",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
)


def of_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """The schema of a tool's parameters; also of a bare map from name to schema.

    Raises :class:`rejection.RejectedRowError` (``bad_tools``).
    """
    if _is_bare_map(parameters):
        parameters = {"type": "object", "properties": parameters}
    return _object(parameters, 0)


def _is_bare_map(parameters: dict[str, Any]) -> bool:
    if not parameters or not all(_is_schema_like(item) for item in parameters.values()):
        return False
    # a keyword's place may be taken by a parameter of that name: {"type": {"type": "string"}}
    used = _KEYWORDS & parameters.keys()
    return not used or (used == {"type"} and isinstance(parameters["type"], dict))


def _is_schema_like(item: Any) -> bool:
    return isinstance(item, dict) or (isinstance(item, str) and item.strip().lower() in _TYPES)


def _schema(schema: Any, depth: int) -> Any:
    """A schema in its place: an object, true or false, or the bare name of a type."""
    if isinstance(schema, bool):
        return schema
    if isinstance(schema, str):
        schema = {"type": schema}
    if not isinstance(schema, dict):
        raise _bad(f"{schema!r} stands where a schema belongs")
    return _object(schema, depth)


def _object(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    if depth > DEPTH_MAX:
        raise _bad("parameters are nested too deeply")
    out = dict(schema)
    _repair_type(out)
    _gather_required(out)
    if isinstance(out.get("items"), list):
        out["prefixItems"] = out.pop("items")  # what the list form of items was renamed to
    for name in _MAPS:
        if name in out:
            items = _checked(out[name], dict, name).items()
            out[name] = {key: _schema(item, depth + 1) for key, item in items}
    for name in _LISTS:
        if name in out:
            out[name] = [_schema(item, depth + 1) for item in _checked(out[name], list, name)]
    for name in _SINGLE:
        if name in out:
            out[name] = _schema(out[name], depth + 1)
    _checked(out.get("enum", []), list, "enum")
    return out


def _checked(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise _bad(f"{name} is {value!r}")
    return value


def _repair_type(schema: dict[str, Any]) -> None:
    value = schema.get("type")
    if "type" not in schema:
        return
    if isinstance(value, list):
        kinds = [_type(word, {}) for word in value]
        schema["type"] = list(dict.fromkeys(kinds))
        if not kinds or "" in kinds:
            del schema["type"]
        return
    kind = _type(value, schema)
    if kind:
        schema["type"] = kind
    else:
        del schema["type"]


def _type(word: Any, schema: dict[str, Any]) -> str:
    """JSON Schema's name for a type, "" for any. ``List[str]`` also gives ``schema`` its items."""
    if not isinstance(word, str):
        raise _bad(f"type is {word!r}")
    bare = _OPTIONAL.sub(lambda found: found["inner"] or "", word.strip())
    found = _GENERIC.fullmatch(bare.strip())
    base = found["base"].lower() if found else ""
    if base == "union":
        return ""
    if base == "enum" and schema.get("enum"):
        return ""
    if base not in _TYPES:
        raise _bad(f"no JSON type: {word!r}")
    kind, inner = _TYPES[base], (found["inner"] if found else None)
    if kind == "array" and inner and inner.strip().lower() in _TYPES:
        schema.setdefault("items", {"type": inner.strip()})
    return kind


def _gather_required(schema: dict[str, Any]) -> None:
    """Bring ``required: true`` of single properties up into the object's own list."""
    own = schema.get("required", [])
    if isinstance(own, bool):  # what is left of it here was for the parent, which has seen it
        schema.pop("required")
        own = []
    if not isinstance(own, list) or not all(isinstance(name, str) for name in own):
        raise _bad(f"required is {own!r}")
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    marked = [
        name
        for name, item in properties.items()
        if isinstance(item, dict) and item.get("required") is True and name not in own
    ]
    if marked:
        schema["required"] = [*own, *marked]


def _bad(detail: str) -> rejection.RejectedRowError:
    return rejection.RejectedRowError(rejection.BAD_TOOLS, detail)
