"""The pass over a ledger's bytes as plain Python: slow, measured for coverage, and with every index checked."""

import importlib.util
from functools import cache

import numba

from bench_pipeline.ledgers.parsing import Scanning


@cache
def plain_scanning() -> Scanning:
    """A second copy of the module, of which nothing is compiled."""
    name = "bench_pipeline.ledgers.scanning"
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    compiled, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, 1
    try:
        spec.loader.exec_module(module)
    finally:
        numba.config.DISABLE_JIT = compiled
    return module
