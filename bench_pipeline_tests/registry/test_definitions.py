"""What of a tool's definition decides what it does."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.identity import digest
from bench_pipeline.registry import Effect, Option, ToolDefinition, ToolModel
from bench_pipeline.registry.documents import Credentials, Invoke, Network, Usage, VersionProbe
from bench_pipeline.registry.names import name_problem, same_name
from bench_pipeline.registry.placeholders import fill, placeholders

INVOKE = Invoke(command=("agent", "{prompt}"), env={"A": "1", "B": "2"}, success_exit_codes=(0, 3))
AGENT = ToolDefinition(
    name="agent",
    invoke=INVOKE,
    usage=Usage(format="plain", files={"log": "log.txt"}),
    network=Network(allow=("a.example.com", "b.example.com")),
    droppings=(".x", ".y"),
    files=("one.py", "two.py"),
)


@pytest.mark.parametrize(
    "changed",
    [
        replace(AGENT, name="other"),
        replace(AGENT, invoke=INVOKE.model_copy(update={"command": ("{prompt}", "agent")})),
        replace(AGENT, invoke=INVOKE.model_copy(update={"stdin": "prompt"})),
        replace(AGENT, invoke=INVOKE.model_copy(update={"env": {"A": "1", "B": "3"}})),
        replace(AGENT, invoke=INVOKE.model_copy(update={"success_exit_codes": (0,)})),
        replace(AGENT, invoke=Invoke(replay="p/{model}.jsonl")),
        replace(AGENT, usage=None),
        replace(AGENT, usage=Usage(format="other", files={"log": "log.txt"})),
        replace(AGENT, network=Network(allow=("a.example.com",))),
        replace(AGENT, droppings=(".x",)),
        replace(AGENT, delivers="patch"),
        replace(AGENT, files=("one.py",)),
    ],
)
def test_everything_that_decides_what_a_tool_does_is_in_its_components(changed: ToolDefinition) -> None:
    assert digest(changed.components()) != digest(AGENT.components())


@pytest.mark.parametrize(
    "changed",
    [
        replace(AGENT, description="Words."),
        replace(AGENT, credentials=Credentials(env=("KEY",))),
        replace(AGENT, version=VersionProbe(command=("agent", "--version"))),
        replace(AGENT, models={"new": ToolModel(id="new-1")}),
        replace(AGENT, options={"new": Option(default="x", values={"x": Effect()})}),
        replace(AGENT, droppings=(".y", ".x")),
        replace(AGENT, network=Network(allow=("b.example.com", "a.example.com"))),
        replace(AGENT, invoke=INVOKE.model_copy(update={"env": {"B": "2", "A": "1"}})),
        replace(AGENT, invoke=INVOKE.model_copy(update={"success_exit_codes": (3, 0, 3)})),
    ],
)
def test_words_credentials_prices_and_what_a_setup_does_not_use_are_not(changed: ToolDefinition) -> None:
    assert digest(changed.components()) == digest(AGENT.components())


def test_where_replayed_rows_are_kept_is_not_part_of_what_a_tool_does() -> None:
    here, there = (
        replace(AGENT, invoke=Invoke(replay=path)) for path in ("a/{model}.jsonl", "b/{model}.jsonl")
    )
    assert here.components() == there.components()


def test_a_free_option_has_its_effect_beside_it_and_a_listed_one_with_the_value() -> None:
    free = Option(free=True, args=("--x", "{value}"), pre=("prepare",))
    assert free.effect("anything") == Effect(args=("--x", "{value}"), pre=("prepare",))
    listed = Option(values={"a": Effect(args=("-a",))})
    assert listed.effect("a").args == ("-a",)
    with pytest.raises(KeyError):
        listed.effect("b")


@given(st.text(), st.text())
def test_a_filled_value_is_not_looked_at_again(prompt: str, value: str) -> None:
    values = {"prompt": prompt, "value": value}
    assert fill("{value}|{prompt}|{{prompt}}|${prompt}", values) == f"{value}|{prompt}|{{prompt}}|${{prompt}}"


@given(st.text(alphabet="{}$ap_ \n"))
def test_a_text_without_placeholders_only_loses_doubled_braces(text: str) -> None:
    names = placeholders([text])
    filled = fill(text, dict.fromkeys(names, "#"))
    assert ("{{" in text) or names or filled == text


@given(st.text(max_size=250))
def test_a_name_that_is_accepted_is_one_path_part_on_every_file_system(name: str) -> None:
    if name_problem(name) is None:
        assert name.isascii()
        assert 0 < len(name) <= 200
        assert not set(name) & set('/\\:*?"<>| \n\0')
        assert not name.startswith((".", "-"))
        assert ".." not in name


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("A", "a", True),
        ("é", "e\u0301", True),
        ("É", "e\u0301", True),
        ("a-b", "a_b", False),
        ("x.y", "x,y", False),
    ],
)
def test_names_are_one_when_only_case_or_unicode_form_differs(left: str, right: str, same: bool) -> None:
    assert (same_name(left) == same_name(right)) is same


def test_equal_documents_make_equal_definitions_whatever_the_order_of_their_keys() -> None:
    def of(keys: list[str]) -> dict[str, Any]:
        values = {"A": "1", "B": "2", "C": "3"}
        return replace(
            AGENT, invoke=Invoke(command=("x",), env={key: values[key] for key in keys})
        ).components()

    assert digest(of(["A", "B", "C"])) == digest(of(["C", "A", "B"]))
