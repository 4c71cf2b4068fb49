"""Tests of bench_pipeline.tasks."""
