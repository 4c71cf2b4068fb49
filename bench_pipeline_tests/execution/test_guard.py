"""Which touched paths are violations."""

import pytest

from bench_pipeline.execution.guard import protected, violations


@pytest.mark.parametrize(
    ("path", "pattern", "covered"),
    [
        ("tests/test_a.py", "tests", True),
        ("tests/test_a.py", "tests/", True),
        ("tests", "tests", True),
        ("tests_more/a.py", "tests", False),
        ("a/b/c.snap", "*.snap", True),
        ("src/app.py", "src/*.py", True),
        ("src/deep/app.py", "src/**", True),
        ("SRC/app.py", "src", False),
        ("src[1]/app.py", "src[1]", False),
    ],
)
def test_a_pattern_is_a_prefix_of_whole_names_or_a_glob(path: str, pattern: str, covered: bool) -> None:
    assert protected(path, pattern) is covered


def test_files_that_only_the_hidden_tests_bring_are_protected_without_being_declared() -> None:
    found = violations(
        ["src/a.py", "tests/test_hidden.py"],
        declared=(),
        brought_by_tests=["tests/test_hidden.py"],
        touched_by_reference=["src/a.py"],
    )
    assert found == ("tests/test_hidden.py",)


def test_runner_configuration_is_protected_unless_the_reference_touches_it() -> None:
    touched = ["pkg/conftest.py", "src/a.py"]
    assert violations(touched, declared=(), brought_by_tests=(), touched_by_reference=()) == (
        "pkg/conftest.py",
    )
    assert (
        violations(touched, declared=(), brought_by_tests=(), touched_by_reference=["pkg/conftest.py"]) == ()
    )


def test_a_declared_path_stays_protected_even_where_the_reference_touches_it() -> None:
    found = violations(["ci/a"], declared=["ci"], brought_by_tests=(), touched_by_reference=["ci/a"])
    assert found == ("ci/a",)


@pytest.mark.parametrize(
    "name",
    [
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "noxfile.py",
        "a/conftest.py",
        "sitecustomize.py",
        "a/usercustomize.py",
        "lib/hook.pth",
        "nose2.cfg",
        ".config/nextest.toml",
    ],
)
def test_every_spelling_of_a_runner_s_configuration_is_protected(name: str) -> None:
    assert violations([name], declared=(), brought_by_tests=(), touched_by_reference=()) == (name,)
