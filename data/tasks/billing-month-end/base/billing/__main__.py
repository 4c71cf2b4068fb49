"""Print the first periods of a subscription: python3 -m billing 2024-03-15 3."""

import datetime
import sys

from billing.periods import periods


def main(arguments):
    """Print one period a line and return the exit status."""
    if len(arguments) != 2:
        print("usage: python3 -m billing YYYY-MM-DD COUNT", file=sys.stderr)
        return 2
    anchor = datetime.date.fromisoformat(arguments[0])
    for period in periods(anchor, int(arguments[1])):
        print(f"{period.start} {period.end} {period.days}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
