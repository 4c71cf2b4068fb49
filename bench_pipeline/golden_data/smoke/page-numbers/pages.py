"""Cut a list into pages of a size; pages are numbered from 1."""


def count(items, size):
    """How many pages `items` items need."""
    return items // size


def page(rows, number, size):
    """The rows of one page."""
    if not 1 <= number <= count(len(rows), size):
        raise IndexError(f"there is no page {number}")
    return rows[(number - 1) * size : number * size]
