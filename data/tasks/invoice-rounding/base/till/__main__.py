"""Print the invoice of an export: python3 -m till FILE."""

import sys
from pathlib import Path

from till.loader import parse
from till.render import render


def main(arguments):
    """Print one invoice and return the exit status."""
    if len(arguments) != 1:
        print("usage: python3 -m till FILE", file=sys.stderr)
        return 2
    print(render(parse(Path(arguments[0]).read_text(encoding="utf-8"))), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
