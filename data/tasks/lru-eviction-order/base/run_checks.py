"""Run the checks that checks.ini names; exit status 1 when one fails."""

import configparser
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def each(suite):
    """Every test of a suite, however deep."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from each(item)
        else:
            yield item


def main():
    """Run the checks and say how many passed."""
    sys.path.insert(0, str(HERE))
    settings = configparser.ConfigParser()
    settings.read(HERE / "checks.ini", encoding="utf-8")
    skip = set(settings.get("checks", "skip").split())
    found = unittest.defaultTestLoader.loadTestsFromNames(settings.get("checks", "modules").split())
    suite = unittest.TestSuite(check for check in each(found) if check.id().rpartition(".")[2] not in skip)
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    print(f"{result.testsRun - len(result.failures) - len(result.errors)} of {result.testsRun} checks passed")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
