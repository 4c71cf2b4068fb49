"""Strict readers of YAML, TOML, JSON, JSON Lines and front matter, and the types of their fields.

What belongs here: texts to models, with every problem at once and each naming file, line and field. What does
not: the fields of one document kind (they live with their lane) and anything that writes.
"""

from bench_pipeline.documents.describing import FieldPath, Plain, describe, dotted, nearest, one_of
from bench_pipeline.documents.fields import (
    Bool,
    Commit,
    Duration,
    Float,
    Int,
    Name,
    RelativePath,
    Size,
    StrictModel,
    Text,
    TextList,
    TextOrList,
)
from bench_pipeline.documents.jsonl import JsonLines, read_jsonl
from bench_pipeline.documents.reading import (
    API_VERSION,
    Document,
    JsonValue,
    load_yaml_bytes,
    parse_json,
    read_document,
    read_documents,
    read_front_matter,
    read_json,
    read_toml,
)
from bench_pipeline.documents.schemas import front_matter_schema, json_schema

__all__ = [
    "API_VERSION",
    "Bool",
    "Commit",
    "Document",
    "Duration",
    "FieldPath",
    "Float",
    "Int",
    "JsonLines",
    "JsonValue",
    "Name",
    "Plain",
    "RelativePath",
    "Size",
    "StrictModel",
    "Text",
    "TextList",
    "TextOrList",
    "describe",
    "dotted",
    "front_matter_schema",
    "json_schema",
    "load_yaml_bytes",
    "nearest",
    "one_of",
    "parse_json",
    "read_document",
    "read_documents",
    "read_front_matter",
    "read_json",
    "read_jsonl",
    "read_toml",
]
