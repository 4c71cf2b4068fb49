"""JSON Schemas of document kinds, for editors and for the reference pages."""

from typing import Any

from pydantic import BaseModel

from bench_pipeline.documents.reading import API_VERSION


def json_schema(model: type[BaseModel], kind: str) -> dict[str, Any]:
    """The JSON Schema of a document: ``apiVersion`` and ``kind``, both required, and the model's fields."""
    schema = front_matter_schema(model, kind)
    head = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    return {
        **schema,
        "properties": {**head, **schema.get("properties", {})},
        "required": ["apiVersion", "kind", *schema.get("required", [])],
    }


def front_matter_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """The JSON Schema of the fields at the top of a text: those of the model."""
    schema = _tidy(model.model_json_schema(by_alias=True, mode="validation"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


# pydantic leaves a bound that follows a validator under its own name.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def _tidy(schema: Any) -> Any:
    """``schema`` with bounds under their names, and without titles that only repeat a field's name."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    numeric = schema.get("type") in ("integer", "number")
    return {
        (_BOUNDS.get(key, key) if numeric else key): _tidy(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
