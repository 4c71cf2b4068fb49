"""The kind of a route, from its text alone.

What belongs here: the rule. It fails closed: one word that it does not know and the route is not a fair one.
"""

import re
from collections.abc import Mapping
from functools import cached_property

from bench_pipeline.errors import DocumentError, Problem

FAIR, ROUTER, BASELINE, OTHER = "FairLocalNpcAgent", "RouterOnly", "Baseline", "Other"
# The order of every summary.
KINDS = (FAIR, ROUTER, BASELINE, OTHER)
KNOWN_ROUTES: Mapping[str, str] = {
    "npc-agent-local": FAIR,
    "router-passthrough": ROUTER,
    "baseline": BASELINE,
}

_WORD = re.compile(r"[^\W_]+")
_ROUTER_WORDS = {"router", "passthrough"}
_FAIR_WORDS = {"npc", "agent", "local"}
_VERSION = re.compile(r"v?[0-9]+")
# Distinct routes of an honest ledger are few; a ledger that has one per row must not be remembered whole.
_REMEMBERED = 10_000


class Routes:
    """The kinds of routes: the exact table with a project's own entries, then the words of the route.

    Raises:
        DocumentError: an entry of ``own`` names no kind; ``file`` is where it stands.
    """

    def __init__(self, own: Mapping[str, str] | None = None, *, file: str = "config.yaml") -> None:
        own = own or {}
        known = ", ".join(KINDS)
        wrong = [
            Problem(file, None, f"ledgers.routes.{route}", f"{kind!r} is no kind of route; known: {known}")
            for route, kind in own.items()
            if kind not in KINDS
        ]
        if wrong:
            raise DocumentError(wrong)
        self.own = dict(own)
        self._kinds: dict[str | None, str] = {}

    @cached_property
    def _exact(self) -> Mapping[str, str]:
        return {**KNOWN_ROUTES, **self.own}

    def kind(self, route: str | None) -> str:
        """The kind of a route; a row without one is of the kind Other."""
        if route is None:
            return OTHER
        found = self._kinds.get(route)
        if found is None:
            found = self._exact.get(route) or _kind_of_words(route)
            if len(self._kinds) < _REMEMBERED:
                self._kinds[route] = found
        return found


def _kind_of_words(route: str) -> str:
    words = set(_WORD.findall(route.lower()))
    if words & _ROUTER_WORDS:
        return ROUTER
    if "baseline" in words:
        return BASELINE
    if words >= _FAIR_WORDS and all(_VERSION.fullmatch(word) for word in words - _FAIR_WORDS):
        return FAIR
    return OTHER
