def number(text):
    """The number that a Roman numeral stands for."""
    raise NotImplementedError
