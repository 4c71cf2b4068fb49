"""bench_pipeline answers one question: which coding setup is better, and how sure are we?

Only the version belongs here: importing the package must import nothing heavy.
"""

__version__ = "0.1.0"
