"""Print a number: python3 -m phonebook FILE NAME."""

import sys

from phonebook.loader import load


def main(arguments):
    """Print the number of a person and return the exit status: 1 when there is nobody of that name."""
    if len(arguments) != 2:
        print("usage: python3 -m phonebook FILE NAME", file=sys.stderr)
        return 2
    number = load(arguments[0]).find(arguments[1])
    if number is None:
        print(f"nobody is called {arguments[1]}", file=sys.stderr)
        return 1
    print(number)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
