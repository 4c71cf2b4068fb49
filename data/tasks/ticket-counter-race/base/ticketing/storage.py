"""The file that keeps the last number."""

import os


class Damaged(Exception):
    """The file does not hold a number."""


def load(path):
    """The number in the file, 0 when there is no file yet."""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read()
    except FileNotFoundError:
        return 0
    if not text.endswith("\n") or not text[:-1].isdigit():
        raise Damaged(f"{path} holds {text!r}, not a number")
    return int(text)


def save(path, number):
    """Replace the file; readers see the old number or the new one, never half of one."""
    scratch = f"{path}.new"
    with open(scratch, "w", encoding="ascii") as file:
        file.write(f"{number}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, path)
