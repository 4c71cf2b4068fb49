"""The committed reference says what the code says."""

import json
import posixpath
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

import bench_pipeline
from bench_pipeline.cli.main import COMMANDS, bench
from bench_pipeline.errors import BenchError
from bench_pipeline.pipeline.reference import document_kinds, reference_files, schema_name, write_reference
from bench_pipeline.tables import TABLES

PACKAGE = Path(bench_pipeline.__file__).parent
CHECKOUT = PACKAGE.parent


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return reference_files(bench)


def test_the_committed_reference_is_up_to_date(tmp_path: Path) -> None:
    """As ``make docs`` does it, in an interpreter of its own: other tests patch the commands of this one."""
    command = [sys.executable, "-m", "bench_pipeline.pipeline.reference", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=CHECKOUT)
    committed, fresh = _reference_below(CHECKOUT / "docs"), _reference_below(tmp_path)
    assert sorted(committed) == sorted(fresh), "run `make docs`"
    assert [name for name, text in fresh.items() if committed[name] != text] == [], "run `make docs`"


def _reference_below(docs: Path) -> dict[str, str]:
    return {
        path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8")
        for folder in ("reference", "schemas")
        for path in (docs / folder).iterdir()
    }


def test_the_reference_does_not_depend_on_the_terminal(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert reference_files(bench) == files


def test_every_command_table_and_error_has_its_place(files: dict[str, str]) -> None:
    for name in COMMANDS:
        assert f"\n## bench {name}\n" in files["reference/commands.md"]
    for name, table in TABLES.items():
        assert f"\n## {name}\n" in files["reference/tables.md"]
        for column in table.schema.names:
            assert f"| `{column}` |" in files["reference/tables.md"]
    codes = {kind.exit_code for kind in (BenchError, *BenchError.__subclasses__())} | {0, 130}
    for code in codes:
        assert f"\n| {code} |" in files["reference/exit-codes.md"]


def test_every_field_has_its_row_with_what_its_model_says_of_it(files: dict[str, str]) -> None:
    for kind, model in document_kinds().items():
        page = files[f"reference/{kind.lower()}.md"]
        for name, field in model.model_fields.items():
            rows = [line for line in page.splitlines() if line.startswith(f"| `{field.alias or name}` |")]
            assert rows, (kind, name)
            said = " ".join((field.description or "").split()).replace("``", "`").replace("|", "\\|")
            assert any(said in row for row in rows), (kind, name)


def test_links_between_pages_lead_somewhere(files: dict[str, str]) -> None:
    for name, text in files.items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            assert path in files or path == "schemas", (name, target)
        for anchor in re.findall(r"\]\(#([^)]+)\)", text):
            assert f"## {anchor}\n" in text.lower(), (name, anchor)


def test_documents_that_are_shipped_fit_the_schemas(files: dict[str, str]) -> None:
    paths = [*PACKAGE.glob("registry/builtin/*.yaml"), *PACKAGE.glob("templates/**/*.yaml")]
    paths += [*(CHECKOUT / "data").glob("*.yaml"), *(CHECKOUT / "data").glob("*/*.yaml")]
    paths += (CHECKOUT / "data" / "tasks").glob("*/task.yaml")
    assert len(paths) >= 4
    for path in paths:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        schema = json.loads(files[f"schemas/{schema_name(document['kind'])}"])
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(document, schema)


def test_pages_that_are_no_longer_made_are_removed_and_others_stay(
    tmp_path: Path, files: dict[str, str]
) -> None:
    folder = tmp_path / "reference"
    folder.mkdir()
    (folder / "old.md").write_text(files["reference/README.md"])
    (folder / "mine.md").write_text("# By hand\n")
    written = write_reference(tmp_path, bench)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in written) == sorted(files)
    assert not (folder / "old.md").exists()
    assert (folder / "mine.md").exists()
