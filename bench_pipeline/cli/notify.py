"""``bench notify``: who is told what happens by itself, and whether they can be."""

from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import emit_json, emit_rows, format_options, project_option, project_root

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

_STATE = ("target", "url_env", "url_set", "events", "waiting", "given_up", "problem")
_TRIED = ("target", "sent", "problem")


@click.command()
@click.option("--test", "trial", is_flag=True, help="Send a test message to each target now.")
@project_option
@format_options
def notify(*, trial: bool, project_dir: str | None, as_json: bool, plain: bool) -> int:
    """Show the targets under `notifications` in config.yaml, and what has become of their messages.

    \b
    bench notify                  who is told what, what waits, and why the last try failed
    bench notify --test           a message to each, which says that nothing has happened

    Messages are sent by the daemon of `bench ui`. With --test, exit status 1 when a target did not take the message.
    """
    from bench_pipeline.errors import NotFoundError
    from bench_pipeline.pipeline.bench import Bench

    bench = Bench(project_root(project_dir))
    if not bench.project.config.notifications:
        remedy = "add one under `notifications:` in config.yaml, such as team: {url_env: TEAM_URL}"
        raise NotFoundError("looking for targets of notifications", "the project has none", remedy)
    rows = _tried(bench) if trial else _states(bench)
    if as_json:
        emit_json(rows)
    else:
        emit_rows(rows, _TRIED if trial else _STATE, plain=plain, title="Notifications")
    return 1 if trial and not all(row["sent"] for row in rows) else 0


def _states(bench: "Bench") -> list[dict[str, object]]:
    from dataclasses import asdict

    from bench_pipeline.pipeline.notifying import target_states

    return [asdict(state) for state in target_states(bench)]


def _tried(bench: "Bench") -> list[dict[str, object]]:
    from bench_pipeline.pipeline.notifying import try_targets

    return [
        {"target": target, "sent": delivery.problem is None, "problem": delivery.problem}
        for target, delivery in try_targets(bench).items()
    ]
