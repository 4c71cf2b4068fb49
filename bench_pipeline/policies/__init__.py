"""Three ways to ask one ordered set of questions under one call budget, counted and compared.

What belongs here: cases and what is correct, recordings, models that answer, the call loop, receipts and their
leaderboard; all of it works on files and needs neither a project nor Dagster. What does not: tables and assets
(``pipeline``, ``defs``), and the words of the command line.
"""
