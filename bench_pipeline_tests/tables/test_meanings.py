"""What columns say is written down for each of them, and for none that is not there."""

import pytest

from bench_pipeline.tables import TABLES, meaning, meanings

COLUMNS = {(table.name, column) for table in TABLES.values() for column in table.schema.names}


@pytest.mark.parametrize(("table", "column"), sorted(COLUMNS))
def test_every_column_says_what_it_is_in_one_sentence(table: str, column: str) -> None:
    text = meaning(table, column)
    assert text.endswith(".")
    assert len(text) < 110


def test_nothing_is_said_of_columns_that_are_not_there() -> None:
    assert set(meanings._IN_TABLE) <= COLUMNS
    own = {name for _, name in meanings._IN_TABLE}
    used = {column for table, column in COLUMNS if (table, column) not in meanings._IN_TABLE}
    assert set(meanings._ANYWHERE) == used, own
