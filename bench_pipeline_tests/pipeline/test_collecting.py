"""The verdicts table holds what was measured, and nothing that only a clock told."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.pipeline.collecting import without_entry

_MAPS = st.lists(
    st.none() | st.dictionaries(st.sampled_from(["journal", "patch", "signals"]), st.text(max_size=3))
)


@given(_MAPS, st.integers(0, 3))
def test_an_entry_leaves_every_map_and_the_others_stay(maps: list[dict[str, str] | None], start: int) -> None:
    rows = [None if entry is None else list(entry.items()) for entry in maps]
    kind = pa.map_(pa.string(), pa.string())
    column = pa.chunked_array([pa.array(rows[:2], kind), pa.array(rows[2:], kind)]).slice(
        min(start, len(rows))
    )
    left = without_entry(column, "journal").to_pylist()
    expected = [
        None if row is None else [item for item in row if item[0] != "journal"] for row in rows[start:]
    ]
    assert left == expected
