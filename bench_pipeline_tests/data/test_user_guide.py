"""The documents that the user guide shows are documents that the readers accept."""

import re
import textwrap
from pathlib import Path

import pytest

from bench_pipeline.documents import read_document
from bench_pipeline.pipeline.reference import document_kinds

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "user-guide.md"


def shown_documents() -> list[str]:
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    texts = [textwrap.dedent(block).strip("\n") + "\n" for block in blocks]
    return [text for text in texts if text.startswith("apiVersion:")]


def kind_of(text: str) -> str:
    found = re.search(r"^kind: (\w+)$", text, re.MULTILINE)
    assert found
    return found[1]


def test_the_guide_shows_each_kind_that_people_write() -> None:
    assert sorted(map(kind_of, shown_documents())) == ["Evaluation", "Task", "Tool", "Workflow"]


@pytest.mark.parametrize("text", shown_documents(), ids=kind_of)
def test_a_shown_document_is_read_without_a_problem(text: str, tmp_path: Path) -> None:
    path = tmp_path / "shown.yaml"
    path.write_text(text, encoding="utf-8")
    kind = kind_of(text)
    read_document(path, document_kinds()[kind], kind)
