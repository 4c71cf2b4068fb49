def seconds(text):
    """Seconds of a duration such as 1h30m or 45s."""
    return int(text.rstrip("s"))
