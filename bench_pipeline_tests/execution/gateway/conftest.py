"""A gateway that the tests of a module share, since starting one costs most of a second."""

import os
from collections.abc import Iterator

import pytest

from bench_pipeline_tests.execution.gateway.test_gateway import KEY, VARIABLE, Opened, opened
from bench_pipeline_tests.model_server import model_server


@pytest.fixture(scope="module", autouse=True)
def _key() -> Iterator[None]:
    os.environ[VARIABLE] = KEY
    yield
    del os.environ[VARIABLE]


@pytest.fixture(scope="module")
def _shared() -> Iterator[Opened]:
    with model_server() as server, opened(server) as gateway:
        yield Opened(gateway, server)


@pytest.fixture
def shared(_shared: Opened) -> Opened:
    """One gateway without caps, before a server that answers."""
    _shared.script({"text": "done"})
    return _shared
