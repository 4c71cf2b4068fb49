"""Scores of golden tasks: what was measured or reported of them, put together into one number with gates.

What belongs here: reading telemetry and judgements, task results, the taxonomy of failures, the composite score, run
files and what a judge is asked. What does not: golden task files (``tasks.golden``), running them as cells
(``execution``) and where rows are kept (``store``).

Everything read here was written by others; an invalid record is reported with its line, counts as missing, and still
closes the gates that it names.
"""
