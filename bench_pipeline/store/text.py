"""Text that Parquet, JSON and DuckDB can all hold.

What belongs here: the one documented replacement. What does not: redaction, and escaping for a terminal or
HTML.
"""

import re

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_text(text: str | None) -> str | None:
    """``text`` with each lone surrogate as U+FFFD and each NUL as U+2400, so that any column can hold it.

    Everything else stays as it was, an empty string too; None, which is unknown, stays None.
    """
    if text is None:
        return None
    return _LONE_SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).replace("\x00", "\N{SYMBOL FOR NULL}")
