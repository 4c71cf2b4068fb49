"""The kind of a route: exact names first, then words, and what is not known is not fair."""

import pytest

from bench_pipeline.errors import DocumentError
from bench_pipeline.ledgers.routes import BASELINE, FAIR, OTHER, ROUTER, Routes


@pytest.mark.parametrize(
    ("route", "kind"),
    [
        ("npc-agent-local", FAIR),
        ("router-passthrough", ROUTER),
        ("baseline", BASELINE),
        ("NPC_Agent.LOCAL", FAIR),
        ("local/npc agent v2", FAIR),
        ("npc-agent-local-2026-07", FAIR),
        ("npc-agent-local-npc", FAIR),
        ("npc-agent", OTHER),
        ("npc-agent-local-tuned", OTHER),
        ("npc-agent-local-v2x", OTHER),
        ("npcagentlocal", OTHER),
        ("npc-agent-local-ü", OTHER),
        ("router-npc-agent-local", ROUTER),
        ("passthrough-baseline", ROUTER),
        ("routers", OTHER),
        ("baseline-npc-agent-local", BASELINE),
        ("The Baseline", BASELINE),
        ("", OTHER),
        (None, OTHER),
    ],
)
def test_a_route_is_of_the_kind_that_its_words_say_and_other_when_one_is_unknown(
    route: str | None, kind: str
) -> None:
    assert Routes().kind(route) == kind


def test_a_project_names_the_kinds_of_its_own_routes_by_their_exact_names() -> None:
    routes = Routes({"house-agent": FAIR})
    assert routes.kind("house-agent") == FAIR
    assert routes.kind("House-Agent") == OTHER
    assert routes.kind("npc-agent-local") == FAIR


def test_every_entry_that_names_no_kind_is_refused_at_once() -> None:
    with pytest.raises(DocumentError, match=r"ledgers\.routes\.a: 'Fair' is no kind") as caught:
        Routes({"a": "Fair", "b": "Baseline", "c": "x"})
    assert [problem.field for problem in caught.value.problems] == ["ledgers.routes.a", "ledgers.routes.c"]
