"""The resources of the code location: plain objects of ours that assets receive.

``Bench`` finds the project (BENCH_PROJECT, or the nearest one above the working directory) when it is first
used, so that importing the definitions touches no file.
"""

from bench_pipeline.pipeline.bench import Bench


def default_resources() -> dict[str, object]:
    """The resources of a code location that was not handed others."""
    return {"bench": Bench()}
