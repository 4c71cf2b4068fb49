"""The estimators: intervals, paired differences, attempts, ranks, pairwise judges, agreement, planning.

What belongs here: pure functions over numbers, each returning its value together with the method, the n and
the seed behind it. What does not: tables, setups, tasks and how they are read (``pipeline``) or shown
(``reports``). Unknown is None, never 0 and never NaN; sums are exact, so the order of the input changes
nothing.
"""
