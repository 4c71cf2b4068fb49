def is_leap(year):
    """Whether a year of the Gregorian calendar has a 29th of February."""
    raise NotImplementedError
