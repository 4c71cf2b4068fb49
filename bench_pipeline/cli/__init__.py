"""The command line: parse, call ``pipeline``, print. Nothing is decided here."""
