"""Built-in, user-level and project files, read and laid over one another.

What belongs here: finding the files, the order of layers, merging per model and per option. What does not:
checks of one file (``checks``) and answering questions about tools (``loading``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from bench_pipeline.documents import Document, one_of, read_documents
from bench_pipeline.documents.fields import as_name
from bench_pipeline.errors import Problem
from bench_pipeline.registry.checks import tool_problems
from bench_pipeline.registry.definitions import Definition, ToolDefinition, WorkflowDefinition
from bench_pipeline.registry.documents import ToolDocument, ToolModel, WorkflowDocument
from bench_pipeline.registry.names import name_problem, same_name

BUILTIN_DIR = Path(__file__).parent / "builtin"
_KINDS: Mapping[str, type[ToolDocument | WorkflowDocument]] = {
    "Tool": ToolDocument,
    "Workflow": WorkflowDocument,
}
BUILTIN, USER, PROJECT = "built-in", "user-level", "project"


@dataclass(frozen=True)
class Source:
    """One file of one layer that says something about the tool ``name``."""

    name: str
    layer: str
    document: Document[ToolDocument | WorkflowDocument]

    @property
    def path(self) -> Path:
        """The file."""
        return self.document.path


@dataclass
class Merged:
    """The definitions of all layers read so far, the files that each comes from, and what was wrong."""

    tools: dict[str, Definition] = field(default_factory=dict)
    sources: dict[str, tuple[Source, ...]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def spelling(self, name: str) -> str | None:
        """The known name that a reader or a file system may take for ``name``."""
        return next((known for known in self.tools if same_name(known) == same_name(name)), None)


def read_layers(project_root: Path | None, user_dir: Path | None) -> Merged:
    """All layers merged, weakest first; documents that are wrong are left out and their problems kept."""
    merged = Merged()
    _add_layer(merged, *_builtin_sources())
    for layer, folder in ((USER, user_dir), (PROJECT, project_root)):
        if folder is not None:
            _add_layer(merged, *_read_layer(layer, folder / "tools"))
    return merged


@lru_cache(maxsize=1)
def _builtin_sources() -> tuple[tuple[Source, ...], tuple[Problem, ...]]:
    return _read_layer(BUILTIN, BUILTIN_DIR)


def _read_layer(layer: str, folder: Path) -> tuple[tuple[Source, ...], tuple[Problem, ...]]:
    """The files of one layer; two that define one tool are refused, naming both."""
    paths, problems = _layer_files(folder)
    documents, wrong = read_documents(paths, _KINDS)
    problems += wrong
    sources: dict[str, Source] = {}
    for document in documents:
        name = document.model.tool or document.path.stem
        reason = None if document.model.tool else name_problem(name)
        first = sources.get(same_name(name))
        if reason:
            problems.append(document.problem((), f"the file's name is the tool's, and {name!r} {reason}"))
        elif first is not None:
            message = (
                f"defines the tool {name}, which {first.path} defines too ({first.name}): keep one of them"
            )
            problems.append(document.problem(("tool",), message))
        else:
            sources[same_name(name)] = Source(name, layer, document)
    return tuple(sources.values()), tuple(problems)


def _layer_files(folder: Path) -> tuple[list[Path], list[Problem]]:
    try:
        entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    problems = [
        Problem(str(path), None, "", f"is not read: documents end in .yaml; name it {path.stem}.yaml")
        for path in entries
        if path.suffix.lower() in {".yml", ".yaml"} and path.suffix != ".yaml"
    ]
    return [path for path in entries if path.suffix == ".yaml"], problems


def _add_layer(merged: Merged, sources: Iterable[Source], problems: Iterable[Problem]) -> None:
    merged.problems.extend(problems)
    for source in sources:
        found = list(_source_problems(merged, source))
        merged.problems.extend(found)
        if not found:
            _add(merged, source)


def _source_problems(merged: Merged, source: Source) -> Iterator[Problem]:
    document, name = source.document, source.name
    known = merged.spelling(name)
    overlay = isinstance(document.model, ToolDocument) and document.model.extends is not None
    builtin = [tool for tool, files in merged.sources.items() if files[0].layer == BUILTIN]
    if known is not None and known != name:
        yield document.problem(
            ("tool",), f"{name} and {known} differ in letter case only: choose another name"
        )
    elif overlay and name not in builtin:
        yield document.problem(
            ("tool",),
            f"{name} is not built in, so it cannot be extended; {one_of(name, builtin, 'built-in tools')}",
        )
    elif not overlay and name in builtin and source.layer != BUILTIN:
        yield document.problem(
            ("tool",), f"{name} is built in: add extends: builtin for an overlay, or choose another name"
        )
    if isinstance(document.model, ToolDocument):
        yield from (document.problem(steps, message) for steps, message in tool_problems(document.model))


def _add(merged: Merged, source: Source) -> None:
    name, model = source.name, source.document.model
    if isinstance(model, WorkflowDocument):
        merged.tools[name] = WorkflowDefinition(name, model.steps, model.description)
    elif model.extends is not None:
        below = merged.tools[name]
        assert isinstance(below, ToolDefinition)
        merged.tools[name] = replace(
            below,
            description=model.description or below.description,
            models={**below.models, **model.models},
            options={**below.options, **model.options},
        )
        merged.sources[name] = (*merged.sources[name], source)
        return
    else:
        merged.tools[name] = _complete(name, model)
    merged.sources[name] = (source,)


def _complete(name: str, model: ToolDocument) -> ToolDefinition:
    assert model.invoke is not None
    return ToolDefinition(
        name=name,
        invoke=model.invoke,
        description=model.description,
        version=model.version,
        usage=model.usage,
        credentials=model.credentials,
        network=model.network,
        model_apis=model.model_apis,
        varies=model.varies,
        models=model.models,
        options=model.options,
        droppings=model.droppings,
        delivers=model.delivers,
        files=model.files,
    )


def with_replayed_models(tool: ToolDefinition, project_root: Path) -> tuple[ToolDefinition, list[Problem]]:
    """A replaying tool with a model for each file in the project that it can replay."""
    assert tool.invoke.replay is not None
    folder, _, pattern = tool.invoke.replay.rpartition("/")
    before, _, after = pattern.partition("{model}")
    found: dict[str, ToolModel] = {}
    problems: list[Problem] = []
    try:
        entries = sorted((project_root / folder).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return tool, problems
    for path in entries:
        name = path.name
        matches = name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)
        if not matches or name.startswith(".") or not path.is_file():
            continue
        try:
            model = as_name(name[len(before) : len(name) - len(after)])
        except ValueError as error:
            problems.append(Problem(str(path), None, "", f"the file's name is a model's, and {error}"))
        else:
            found[model] = ToolModel(id=model)
    return replace(tool, models={**found, **tool.models}), problems


def relative_to(path: Path, root: Path | None) -> str:
    """``path`` for people: below ``root`` without it, below the home folder with ``~``."""
    for base, prefix in ((root, ""), (_home(), "~/")):
        if base is not None and path.is_relative_to(base):
            return prefix + path.relative_to(base).as_posix()
    return str(path)


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


def file_names(merged: Merged, project_root: Path | None, user_dir: Path | None) -> Mapping[str, str]:
    """For each tool, the file that would add a model or an option to it, as people write it."""
    names: dict[str, str] = {}
    for name, sources in merged.sources.items():
        top = sources[-1]
        if top.layer == BUILTIN:
            folder = project_root or user_dir or Path()
            names[name] = relative_to(folder / "tools" / f"{name}.yaml", project_root)
        elif top.layer == USER and len(sources) > 1 and project_root is not None:
            names[name] = f"tools/{name}.yaml"
        else:
            names[name] = relative_to(top.path, project_root)
    return names
