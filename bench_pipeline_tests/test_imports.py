"""What a fresh interpreter loads."""

import subprocess
import sys

import pytest

HEAVY = ("dagster", "pyarrow", "pandas", "pydantic", "httpx", "numpy", "scipy", "duckdb", "yaml", "rich")


@pytest.mark.parametrize(
    "code",
    [
        "import bench_pipeline",
        "from bench_pipeline.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass",
    ],
    ids=["importing the package", "bench --help"],
)
def test_nothing_heavy_is_loaded_by(code: str) -> None:
    probe = f"{code}\nimport sys\nsys.stderr.write(' '.join(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stderr == ""
