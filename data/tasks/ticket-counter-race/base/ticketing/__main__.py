"""Print tickets: python3 -m ticketing FOLDER PREFIX [HOW_MANY]."""

import sys

from ticketing.desk import Desk


def main(arguments):
    """Print tickets, one a line, and return the exit status."""
    if len(arguments) not in (2, 3):
        print("usage: python3 -m ticketing FOLDER PREFIX [HOW_MANY]", file=sys.stderr)
        return 2
    desk = Desk(arguments[0], arguments[1])
    for _ in range(int(arguments[2]) if len(arguments) == 3 else 1):
        print(desk.ticket())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
