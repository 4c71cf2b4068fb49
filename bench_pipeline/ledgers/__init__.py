"""Ledgers: results that others measured, read in bounded memory and summed up per route, never across route kinds.

What belongs here: what a row may say, when it is valid, what kind its route is, the sums. What does not: where ledgers
are kept, which of them are new (``pipeline.ledger_watch``), and how a summary is printed (``reports.ledgers``).
"""
