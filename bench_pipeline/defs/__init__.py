"""The only home of Dagster's decorators: partitions, assets, checks, jobs.

Nothing here computes: an asset calls its use case in ``pipeline`` and reports what came of it. Everything in
this folder is imported by ``build_defs`` and must do nothing when imported.
"""
