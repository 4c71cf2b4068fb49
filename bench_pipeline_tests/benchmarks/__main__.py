"""Run every benchmark module, or those named, and print a table; exit 1 when a limit is missed."""

import importlib
import pkgutil
import sys

import bench_pipeline_tests.benchmarks as package


def main(wanted: list[str]) -> int:
    """Measure and print; returns the exit status."""
    missed = 0
    print(f"{'what':68} {'ours':>11} {'peer':>11} {'ratio':>7} {'limit':>6}")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("_") or (wanted and module.name not in wanted):
            continue
        for row in importlib.import_module(f"{package.__name__}.{module.name}").measure():
            held = row.ratio <= row.limit_ratio
            missed += not held
            mark = "" if held else "  MISSED"
            print(
                f"{row.name:68} {row.ours_s:11.4f} {row.peer_s:11.4f} {row.ratio:7.2f} {row.limit_ratio:6.2f}{mark}",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
