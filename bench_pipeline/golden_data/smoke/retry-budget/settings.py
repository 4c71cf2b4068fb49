"""Settings from JSON text."""

import json


def load(text):
    given = json.loads(text)
    return {"host": given.get("host") or "localhost"}
