"""What a name is looked up by."""


def key(name):
    """The form that all spellings of one name share."""
    return name.strip().lower()
