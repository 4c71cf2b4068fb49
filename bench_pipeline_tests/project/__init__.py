"""Tests of finding and reading a project."""
