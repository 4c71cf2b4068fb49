"""From an evaluation's file to its setups: counts, order, repeats, and what is refused."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.documents import Document
from bench_pipeline.errors import DocumentError, NotFoundError
from bench_pipeline.evaluations import (
    EvaluationDocument,
    Resolution,
    list_evaluations,
    load_evaluation,
    misnamed_evaluations,
    resolve,
)
from bench_pipeline.evaluations.axes import MAX_SETUPS
from bench_pipeline.evaluations.documents import Block
from bench_pipeline.project import Project, find_project
from bench_pipeline.registry import Registry

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
TOOLS = {
    "claude": """\
kind: Tool
invoke: {command: [claude, --model, "{model_id}", "{prompt}"]}
version: {command: [claude, --version]}
models:
  sonnet-5: {id: claude-sonnet-5, effort: [low, medium, high]}
  opus-5: {id: claude-opus-5, effort: [low, medium, high, max]}
  plain: {id: claude-plain}
options:
  agents_md: {default: default, values: {default: {}, none: {pre: [rm -f AGENTS.md]}}}
  max_turns: {default: 50, values: {10: {}, 50: {}, 100: {}}}
  strictness: {default: 1, values: {1: {}, 1.0: {}, true: {}, on: {}}}
""",
    "cod": """\
kind: Tool
invoke: {command: [cod, "{prompt}"]}
version: {command: [cod, --version]}
models: {gpt: {id: gpt-5, effort: [no, medium, high]}}
""",
    "bare": "kind: Tool\ninvoke: {command: [bare, '{prompt}']}\n",
    "plan-build": """\
kind: Workflow
type: workflow
steps:
  - {name: plan, tool: claude, prompt: "{prompt}"}
  - {name: build, tool: claude, model: sonnet-5, effort: medium, timeout: 10m, options: {max_turns: 10}}
""",
    "bare-twice": "kind: Workflow\ntype: workflow\nsteps: [{name: a, tool: bare}, {name: b, tool: bare}]\n",
    "mixed": """\
kind: Workflow
type: workflow
steps:
  - {name: plan, tool: claude}
  - {name: check, tool: bare}
  - {name: build, tool: cod, model: gpt}
""",
}
Make = Callable[[str], Resolution]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "config.yaml").write_text(HEAD + "kind: Project\ndefaults: {attempts: 2, max_attempts: 5}\n")
    (folder / "tools").mkdir()
    (folder / "evaluations").mkdir()
    for name, body in TOOLS.items():
        (folder / "tools" / f"{name}.yaml").write_text(HEAD + body)
    return folder


@pytest.fixture(scope="module")
def project(root: Path) -> Project:
    return find_project(root)


@pytest.fixture(scope="module")
def registry(root: Path) -> Registry:
    return Registry.load(root, None)


@pytest.fixture
def make(root: Path, project: Project, registry: Registry) -> Make:
    """Resolves the text below ``kind: Evaluation``."""

    def made(body: str) -> Resolution:
        (root / "evaluations" / "one.yaml").write_text(HEAD + "kind: Evaluation\n" + body)
        return resolve(project, registry, load_evaluation(project, "one"))

    return made


def problems(make: Make, body: str) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        make(body)
    return [f"{problem.line}: {problem.field}: {problem.message}" for problem in caught.value.problems]


def labels(resolution: Resolution) -> list[str]:
    return [setup.label for setup in resolution.setups]


def test_blocks_are_added_and_the_axes_of_a_block_multiplied(make: Make) -> None:
    made = make(
        "attempts: 3\ntools:\n"
        "  - {tool: claude, model: [sonnet-5, opus-5], effort: medium}\n"
        "  - {tool: cod, model: gpt, effort: [medium, high]}\n"
    )
    assert labels(made) == [
        "claude/sonnet-5/medium",
        "claude/opus-5/medium",
        "cod/gpt/medium",
        "cod/gpt/high",
    ]
    assert (len(made.setups), made.cells_per_task) == (4, 12)


def test_an_option_alone_gives_one_setup_per_value(make: Make) -> None:
    made = make(
        "attempts: 3\n"
        "tools: [{tool: claude, model: opus-5, effort: max, options: {agents_md: [default, none]}}]\n"
    )
    assert labels(made) == ["claude/opus-5/max", "claude/opus-5/max+agents_md=none"]
    assert (len(made.setups), made.cells_per_task) == (2, 6)


WORKFLOW = "  - {tool: plan-build, steps: {plan: {model: [sonnet-5, opus-5], effort: [low, high]}}}\n"


def test_a_workflow_multiplies_over_its_steps(make: Make) -> None:
    made = make(f"tools:\n{WORKFLOW}")
    assert labels(made) == [
        "plan-build/-/-+plan.effort=low+plan.model=sonnet-5",
        "plan-build/-/-+plan.effort=high+plan.model=sonnet-5",
        "plan-build/-/-+plan.effort=low+plan.model=opus-5",
        "plan-build/-/-+plan.effort=high+plan.model=opus-5",
    ]
    control = "  - {tool: cod, model: gpt, effort: medium}\n"
    assert make(f"attempts: 3\ntools:\n{WORKFLOW}{control}").cells_per_task == 15


def test_four_axes_and_a_workflow_give_ten_setups(make: Make) -> None:
    made = make(
        "attempts: 3\ntools:\n"
        "  - tool: claude\n"
        "    tool_version: 1.10\n"
        "    model: [sonnet-5, opus-5]\n"
        "    effort: [low, high]\n"
        "    options: {max_turns: [10, 50]}\n"
        "  - tool: plan-build\n"
        "    steps: {plan: {model: [sonnet-5, opus-5], effort: high}}\n"
    )
    assert (len(made.setups), made.cells_per_task) == (10, 30)
    assert labels(made)[:3] == [
        "claude@1.10/sonnet-5/low+max_turns=10",
        "claude@1.10/sonnet-5/low",
        "claude@1.10/sonnet-5/high+max_turns=10",
    ]


def test_the_loops_are_version_model_effort_options_in_document_order_then_steps_in_workflow_order(
    make: Make,
) -> None:
    made = make(
        "tools:\n"
        "  - options: {max_turns: [100, 10], agents_md: [none, default]}\n"
        "    effort: [high, low]\n"
        "    model: [opus-5, sonnet-5]\n"
        "    tool_version: ['2', '1']\n"
        "    tool: claude\n"
    )
    wanted = itertools.product(
        ["2", "1"], ["opus-5", "sonnet-5"], ["high", "low"], ["100", "10"], ["none", "default"]
    )
    found = [
        (
            setup.tool_version,
            setup.model,
            setup.effort,
            setup.options["max_turns"],
            setup.options["agents_md"],
        )
        for setup in made.setups
    ]
    assert found == list(wanted)
    steps = "{build: {effort: [low, high]}, plan: {model: opus-5, effort: [max, low]}}"
    made = make(f"tools: [{{tool: plan-build, steps: {steps}}}]\n")
    found_steps = [(setup.steps[0].effort, setup.steps[1].effort) for setup in made.setups]
    assert found_steps == [("max", "low"), ("max", "high"), ("low", "low"), ("low", "high")]


def test_an_option_that_is_not_listed_has_its_default_in_every_setup(make: Make) -> None:
    made = make(
        "tools: [{tool: claude, model: [sonnet-5, opus-5], effort: low, options: {max_turns: 100}}]\n"
    )
    for setup in made.setups:
        assert dict(setup.options) == {"agents_md": "default", "max_turns": "100", "strictness": "1"}
        assert dict(setup.nondefault) == {"max_turns": "100"}


def test_commands_and_timeouts_never_multiply(make: Make) -> None:
    made = make(
        "tools:\n"
        "  - tool: plan-build\n"
        "    pre: [make a, make b]\n"
        "    steps: {plan: {model: opus-5, effort: max, timeout: 90s}, build: {timeout: 5m}}\n"
    )
    (setup,) = made.setups
    assert setup.pre == ("make a", "make b")
    assert [step.timeout_s for step in setup.steps] == [90.0, 300.0]
    assert setup.label == (
        "plan-build/-/-+build.timeout=300s+plan.effort=max+plan.model=opus-5+plan.timeout=90s"
    )


def test_a_step_takes_from_the_block_then_from_the_workflow_then_from_the_evaluation_s_steps(
    make: Make,
) -> None:
    def step_values(body: str) -> list[tuple[str, str | None, str | None, str]]:
        (setup,) = make(f"tools: [{body}]\n").setups
        return [(step.name, step.model, step.effort, step.options["max_turns"]) for step in setup.steps]

    assert step_values("{tool: plan-build, model: opus-5, effort: high, options: {max_turns: 100}}") == [
        ("plan", "opus-5", "high", "100"),
        ("build", "sonnet-5", "medium", "10"),
    ]
    assert step_values(
        "{tool: plan-build, model: opus-5, effort: high, options: {max_turns: 100}, "
        "steps: {plan: {model: sonnet-5}, build: {model: opus-5, effort: max, options: {max_turns: 50}}}}"
    ) == [("plan", "sonnet-5", "high", "100"), ("build", "opus-5", "max", "50")]


def test_a_block_s_model_and_effort_reach_only_steps_that_can_take_them(make: Make) -> None:
    (setup,) = make("tools: [{tool: mixed, model: plain, effort: high}]\n").setups
    assert [(step.tool, step.model, step.effort) for step in setup.steps] == [
        ("claude", "plain", None),
        ("bare", None, None),
        ("cod", "gpt", "high"),
    ]


def test_a_list_of_a_block_that_no_step_takes_is_refused_and_a_single_value_is_merely_the_weakest(
    make: Make,
) -> None:
    steps = "steps: {plan: {model: opus-5, effort: low}}"
    assert problems(make, f"tools: [{{tool: plan-build, model: [sonnet-5, opus-5], {steps}}}]\n") == [
        "3: tools[0].model: no step of plan-build takes it: each has its own, or takes none"
    ]
    assert len(make(f"tools: [{{tool: plan-build, model: sonnet-5, effort: high, {steps}}}]\n").setups) == 1
    found = problems(make, f"tools: [{{tool: plan-build, model: sonet-5, options: {{turns: 1}}, {steps}}}]\n")
    assert [line.split(":")[1] for line in found] == [" tools[0].model", " tools[0].options.turns"]
    assert "did you mean sonnet-5?" in found[0]


def test_one_version_may_not_stand_for_several_tools(make: Make) -> None:
    body = "tools: [{tool: mixed, tool_version: [1, 2], model: plain, effort: high}]\n"
    assert problems(make, body) == [
        "3: tools[0].tool_version: cannot be one for several tools: the steps of mixed use claude, bare, cod"
    ]
    steps = "steps: {plan: {model: opus-5, effort: low}}"
    made = make(f"tools: [{{tool: plan-build, tool_version: [1, 2], {steps}}}]\n")
    assert [[step.tool_version for step in setup.steps] for setup in made.setups] == [["1", "1"], ["2", "2"]]


def test_text_stays_as_written_and_values_that_look_alike_never_merge(make: Make) -> None:
    made = make(
        "tools:\n"
        "  - tool: claude\n"
        "    tool_version: [1.10, 1.1, 12e03, 1_0]\n"
        "    model: plain\n"
        "    options: {strictness: [1, 1.0, true, on]}\n"
        "  - {tool: cod, model: gpt, effort: no}\n"
    )
    assert len(made.setups) == 17
    assert [setup.tool_version for setup in made.setups[:16:4]] == ["1.10", "1.1", "12e03", "1_0"]
    assert [setup.options["strictness"] for setup in made.setups[:4]] == ["1", "1.0", "true", "on"]
    assert made.setups[16].effort == "no"


@pytest.mark.parametrize("values", ['[1, "1"]', "['1', 1]", "[true, 'true']"])
def test_an_option_value_is_its_text_whether_quoted_or_not(make: Make, values: str) -> None:
    (found,) = problems(make, f"tools: [{{tool: claude, model: plain, options: {{strictness: {values}}}}}]\n")
    assert "stands twice in one list, here and at tools[0].options.strictness[0] (line 3)" in found


def test_a_repeat_in_one_list_is_told_with_both_places(make: Make) -> None:
    models = "".join(f"      - {model}\n" for model in ("opus-5", "sonnet-5", "opus-5"))
    body = f"tools:\n  - tool: claude\n    effort: low\n    model:\n{models}"
    assert problems(make, body) == [
        "9: tools[0].model[2]: opus-5 stands twice in one list, here and at tools[0].model[0] (line 7)"
    ]


def test_a_setup_that_two_blocks_give_is_told_with_both_places(make: Make) -> None:
    body = (
        "tools:\n"
        "  - {tool: claude, model: [opus-5, sonnet-5], effort: [low, high]}\n"
        "  - {tool: cod, model: gpt, effort: high}\n"
        "  - {tool: claude, model: opus-5, effort: [high, max], options: {max_turns: 50}}\n"
    )
    (found,) = problems(make, body)
    assert found.startswith("6: tools[2]: gives claude/opus-5/high again, which tools[0] (line 4) gives: ")


def test_many_repeats_of_two_blocks_are_one_problem(make: Make) -> None:
    block = "  - {tool: claude, model: [opus-5, sonnet-5], effort: [low, medium, high]}\n"
    (found,) = problems(make, f"tools:\n{block}{block}")
    assert "and 3 more again" in found


def test_setups_that_differ_in_what_a_label_does_not_show_are_refused(make: Make) -> None:
    block = "tool: cod, model: gpt, effort: high"
    (found,) = problems(make, f"tools:\n  - {{{block}}}\n  - {{{block}, pre: [make]}}\n")
    assert found.startswith(
        "5: tools[1]: gives another setup under the label cod/gpt/high, which tools[0] (line 4)"
    )


def test_more_attempts_than_the_axis_has_are_refused_naming_the_key(make: Make) -> None:
    block = "tools: [{tool: bare}]\n"
    (found,) = problems(make, f"attempts: 6\n{block}")
    assert found.startswith("3: attempts: asks for 6 attempts, and defaults.max_attempts is 5")
    assert make(f"attempts: 5\n{block}").attempts == 5
    assert make(block).attempts == 2, "the project's default"


@pytest.mark.parametrize(
    ("block", "field", "message"),
    [
        ("tool: cluade", "tool", '"cluade" is not a tool; did you mean claude?'),
        ("tool: cluade", "tool", "tools/cluade.yaml would define it"),
        (
            "tool: claude, model: opus-6, effort: low",
            "model",
            '"opus-6" is not a model of claude; did you mean opus-5?',
        ),
        ("tool: claude, model: opus-6, effort: low", "model", "tools/claude.yaml would add it"),
        (
            "tool: claude, model: opus-5, effort: lo",
            "effort",
            'does not take the effort "lo"; did you mean low?',
        ),
        (
            "tool: claude, model: [opus-5, sonnet-5], effort: max",
            "effort",
            "sonnet-5 of claude does not take the effort",
        ),
        ("tool: claude, model: plain, effort: low", "effort", "plain of claude takes no effort"),
        ("tool: claude, effort: low", "", "needs a model; models of claude: sonnet-5, opus-5, plain"),
        (
            "tool: claude, model: [opus-5, plain]",
            "",
            "needs an effort; efforts of opus-5: low, medium, high, max",
        ),
        ("tool: claude, model: plain, options: {turns: 1}", "options.turns", "did you mean max_turns?"),
        ("tool: claude, model: plain, options: {max_turns: 1000}", "options.max_turns", "did you mean 100?"),
        (
            "tool: claude, model: plain, options: {max_turns: []}",
            "options.max_turns",
            "expected at least one entry",
        ),
        ("tool: claude, model: ''", "model", "expected a name"),
        (
            "tool: claude, model: plain, steps: {plan: {}}",
            "steps.plan",
            "claude is no workflow and has no steps",
        ),
        (
            "tool: bare, model: x",
            "model",
            "bare has no models, so none may be named; tools/bare.yaml would add",
        ),
        ("tool: bare, effort: x", "effort", "no model of bare takes the effort"),
        ("tool: bare-twice, tool_version: latest", "tool_version", "bare has no version command"),
        ("tool: bare, tool_version: latest", "tool_version", "bare has no version command that could say"),
        (
            "tool: predictions",
            "",
            "needs a model; models of predictions: none; predictions/NAME.jsonl would add one",
        ),
        ("tool: predictions, model: gold", "model", "predictions/gold.jsonl would add"),
        ("tool: shell", "", "needs the option command, which has no default; values: any text"),
        (
            "tool: plan-build, model: plain, steps: {paln: {}}",
            "steps.paln",
            "paln is not a step; did you mean plan?",
        ),
        ("tool: plan-build", "", "step plan: needs a model"),
        ("tool: plan-build, model: opus-5", "", "step plan: needs an effort"),
        (
            "tool: plan-build, model: plain, steps: {build: {model: plain}}",
            "steps.build.model",
            "step build: plain of claude takes no effort",
        ),
        ("tool: bare, id: x", "id", "is not a known field"),
        ("tool: bare, concurrency: 2", "concurrency", "is not a known field"),
        ("tool: bare, tasks: [a]", "tasks", "is not a known field"),
        ("tool: bare, pre: make", "pre", "expected a list"),
        (
            "tool: plan-build, model: plain, steps: {plan: {timeout: 12:30}}",
            "steps.plan.timeout",
            "expected a duration",
        ),
    ],
)
def test_what_does_not_fit_is_told_with_its_place_the_known_values_and_a_remedy(
    make: Make, block: str, field: str, message: str
) -> None:
    found = problems(make, f"tools:\n  - {{{block}}}\n")
    place = f"4: tools[0]{'.' if field else ''}{field}: "
    assert any(problem.startswith(place) and message in problem for problem in found), found


@pytest.mark.parametrize("field", ["id: x", "concurrency: 2", "tasks: [a]", "tiers: [smoke]", "select: {}"])
def test_an_evaluation_has_no_id_says_nothing_of_concurrency_and_selects_no_tasks(
    make: Make, field: str
) -> None:
    (found,) = problems(make, f"{field}\ntools: [{{tool: bare}}]\n")
    assert found.startswith(f"3: {field.partition(':')[0]}: is not a known field; ")


def test_all_problems_of_all_blocks_are_told_at_once(make: Make) -> None:
    found = problems(
        make,
        "attempts: 9\n"
        "tools:\n"
        "  - {tool: claude, model: [opus-6, opus-5, opus-5], effort: lo, options: {turns: 1, max_turns: 1}}\n"
        "  - {tool: nothing}\n"
        "  - {tool: plan-build, steps: {plan: {model: x, effort: y}, other: {}}}\n",
    )
    assert [line.split(": ")[1] for line in found] == [
        "attempts",
        "tools[0].effort",
        "tools[0].model[0]",
        "tools[0].model[2]",
        "tools[0].options.max_turns",
        "tools[0].options.turns",
        "tools[1].tool",
        "tools[2].steps.other",
        "tools[2].steps.plan.effort",
        "tools[2].steps.plan.model",
    ]


def test_a_product_without_end_is_refused_before_it_is_made(make: Make) -> None:
    texts = ", ".join(f"'{number}'" for number in range(150))
    found = problems(
        make, f"tools: [{{tool: shell, tool_version: [{texts}], options: {{command: [{texts}]}}}}]\n"
    )
    assert found == [f"3: tools[0]: gives 22500 setups, and {MAX_SETUPS} are the most that a block may give"]


def test_evaluations_are_found_by_name_and_misnamed_files_are_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.yaml").write_text(HEAD + "kind: Project\n")
    project = find_project(tmp_path)
    assert list_evaluations(project) == []
    with pytest.raises(NotFoundError, match="bench evaluation create models"):
        load_evaluation(project, "models")
    folder = tmp_path / "evaluations"
    folder.mkdir()
    for name in (
        "models.yaml",
        "x.y.yaml",
        "_hidden.yaml",
        "A_b.yaml",
        "x,y.yaml",
        "é.yaml",
        "x..y.yaml",
        "two.yml",
    ):
        (folder / name).write_text(HEAD + "kind: Evaluation\ntools: [{tool: bare}]\n")
    (folder / ".models.yaml.swp").write_text("")
    (folder / "notes.md").write_text("")
    assert list_evaluations(project) == ["A_b", "_hidden", "models", "x.y"]
    told = {Path(problem.file).name for problem in misnamed_evaluations(project)}
    assert told == {"x,y.yaml", "é.yaml", "x..y.yaml", "two.yml"}
    for name in ("model", "../config", "two", "MODELS", "é", "/etc/passwd", ""):
        with pytest.raises(NotFoundError):
            load_evaluation(project, name)
    assert load_evaluation(project, "models").model.tools[0].tool == "bare"


def test_the_document_of_a_misspelt_name_is_suggested(root: Path, project: Project, make: Make) -> None:
    make("tools: [{tool: bare}]\n")
    with pytest.raises(NotFoundError, match="did you mean one"):
        load_evaluation(project, "onne")


VERSIONS = st.lists(st.sampled_from(["1", "1.0", "1.10", "latest"]), max_size=3, unique=True)
MODELS = st.lists(st.sampled_from(["sonnet-5", "opus-5"]), min_size=1, unique=True)
EFFORTS = st.lists(st.sampled_from(["low", "medium", "high"]), min_size=1, unique=True)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "agents_md": st.lists(st.sampled_from(["default", "none"]), min_size=1, unique=True),
        "max_turns": st.lists(st.sampled_from(["10", "50", "100"]), min_size=1, unique=True),
        "strictness": st.lists(st.sampled_from(["1", "1.0", "true"]), min_size=1, unique=True),
    },
)
AXES = st.tuples(VERSIONS, MODELS, EFFORTS, OPTIONS)


def block_text(axes: tuple[list[str], list[str], list[str], dict[str, list[str]]]) -> str:
    versions, models, efforts, options = axes
    block = {"tool": "claude", "model": models, "effort": efforts, "options": options}
    return json.dumps(block | ({"tool_version": versions} if versions else {}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(AXES)
def test_a_block_gives_the_product_of_its_lists_in_order_each_once(
    make: Make, axes: tuple[list[str], list[str], list[str], dict[str, list[str]]]
) -> None:
    versions, models, efforts, options = axes
    made = make(f"tools: [{block_text(axes)}]\n")
    wanted = list(itertools.product(versions or [None], models, efforts, *options.values()))
    found = [
        (setup.tool_version, setup.model, setup.effort, *(setup.options[name] for name in options))
        for setup in made.setups
    ]
    assert found == wanted
    assert len(set(labels(made))) == len(wanted)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(AXES, AXES)
def test_two_blocks_are_added_and_refused_exactly_when_they_share_a_setup(
    make: Make,
    first: tuple[list[str], list[str], list[str], dict[str, list[str]]],
    second: tuple[list[str], list[str], list[str], dict[str, list[str]]],
) -> None:
    left, right = (labels(make(f"tools: [{block_text(axes)}]\n")) for axes in (first, second))
    both = f"tools:\n  - {block_text(first)}\n  - {block_text(second)}\n"
    if set(left) & set(right):
        (found,) = problems(make, both)
        assert "which tools[0] (line 4) gives: it would be paid for twice" in found
    else:
        assert labels(make(both)) == left + right


def test_a_document_made_without_a_file_resolves_alike(project: Project, registry: Registry) -> None:
    model = EvaluationDocument(tools=(Block(tool="bare"),))
    made = resolve(project, registry, Document(Path("evaluations/here.yaml"), model, "Evaluation"))
    assert (made.evaluation, labels(made)) == ("here", ["bare/-/-"])
