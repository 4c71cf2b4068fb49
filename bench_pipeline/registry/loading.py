"""The registry: every tool and workflow that evaluations of a project may name.

What belongs here: loading it whole or not at all, and looking tools up. What does not: how layers are merged
(``layers``) and what an evaluation makes of a tool (``evaluations``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench_pipeline.documents import one_of
from bench_pipeline.errors import DocumentError, NotFoundError
from bench_pipeline.registry.checks import workflow_problems
from bench_pipeline.registry.definitions import Definition, ToolDefinition
from bench_pipeline.registry.documents import WorkflowDocument
from bench_pipeline.registry.layers import (
    BUILTIN,
    Merged,
    file_names,
    read_layers,
    relative_to,
    with_replayed_models,
)


@dataclass(frozen=True)
class Registry:
    """The tools and workflows of all layers, by name; ``files`` is where each may be extended."""

    tools: Mapping[str, Definition]
    files: Mapping[str, str]
    layers: Mapping[str, tuple[str, ...]]

    @classmethod
    def load(cls, project_root: Path | None, user_dir: Path | None) -> "Registry":
        """Read every layer. Raises DocumentError with all problems of all files."""
        merged = read_layers(project_root, user_dir)
        if project_root is not None:
            _find_replayed(merged, project_root)
        files = file_names(merged, project_root, user_dir)
        for sources in merged.sources.values():
            document, model = sources[-1].document, sources[-1].document.model
            if isinstance(model, WorkflowDocument):
                found = workflow_problems(model, merged.tools, files)
                merged.problems.extend(document.problem(steps, message) for steps, message in found)
        if merged.problems:
            raise DocumentError(merged.problems)
        layers = {
            name: tuple(
                source.layer
                if source.layer == BUILTIN
                else f"{source.layer} {relative_to(source.path, project_root)}"
                for source in sources
            )
            for name, sources in merged.sources.items()
        }
        return cls(merged.tools, files, layers)

    def tool(self, name: str) -> Definition:
        """The tool or workflow of that name. Raises NotFoundError with the nearest match."""
        definition = self.tools.get(name)
        if definition is None:
            raise NotFoundError(
                f"finding the tool {name}", "there is none", one_of(name, self.tools, "tools")
            )
        return definition

    def origins(self, name: str) -> list[str]:
        """The layers and files that a tool comes from, weakest first."""
        return list(self.layers[self.tool(name).name])

    def overlay_file(self, name: str) -> str:
        """The file that would add a model, an option or, for an unknown name, a tool."""
        return self.files.get(name, f"tools/{name}.yaml")


def _find_replayed(merged: Merged, project_root: Path) -> None:
    for name, tool in merged.tools.items():
        if isinstance(tool, ToolDefinition) and tool.invoke.replay is not None:
            merged.tools[name], problems = with_replayed_models(tool, project_root)
            merged.problems.extend(problems)
