"""Real agents' programs in real sandboxes against a scripted model server; run by ``make test-agents``."""
