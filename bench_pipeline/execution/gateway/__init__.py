"""The only way out of a cell for agents that need a model: a process that holds the keys, and what it saw.

What belongs here: the gateway's process (``process``), one cell's door in it (``door``), the three APIs that it
speaks (``apis``), the care for those who serve them (``upstreams``), caps (``accounts``), the record of every request
(``ledger``), recordings of whole exchanges (``recordings``) and answering from one (``masking``, ``replaying``), and
the side of it that cells talk to (``client``). What does not: which tool speaks which API
(``registry``), the network that a command sees (``sandbox``), prices (``registry.pricing``).
"""

from bench_pipeline.execution.gateway.accounts import Caps
from bench_pipeline.execution.gateway.client import Again, Gateway, Route, Session, UpstreamSettings
from bench_pipeline.execution.gateway.ledger import Traffic

__all__ = ["Again", "Caps", "Gateway", "Route", "Session", "Traffic", "UpstreamSettings"]
