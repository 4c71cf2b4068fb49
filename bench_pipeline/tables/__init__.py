"""One Arrow schema per Parquet table, with its name, version and unique key.

What belongs here: column names, types, what a row is. What does not: how rows come about (the lanes) and
where they are kept (``store``). Timestamps are UTC microseconds; null is unknown; a digest is shown as 64 hex
digits in tables (the verdict store keeps it as 32 bytes).
"""

from bench_pipeline.tables.meanings import meaning
from bench_pipeline.tables.schemas import TABLES, table_schema
from bench_pipeline.tables.table import TableSchema

__all__ = ["TABLES", "TableSchema", "meaning", "table_schema"]
