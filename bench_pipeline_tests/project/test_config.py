"""config.yaml: every key has a default, a wrong one names what was meant, the user's file lies below."""

from pathlib import Path

import pytest

from bench_pipeline.errors import DocumentError, Problem
from bench_pipeline.project import MAX_ATTEMPTS, ProjectConfig, load_project, user_dir
from bench_pipeline.tasks import TIERS

HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: Project\n"

EVERY_KEY = """\
defaults: {attempts: 2, max_attempts: 5, concurrency: 4, cell_timeout: 1h30m, resources:
    {cpus: 1.5, memory: 2GiB, pids: 64}}
source: {provider: github, host: github.com, owner: o, repo: r, remote: "https://example.com/r.git"}
dockerfile: Dockerfile
harvest: {test_patterns: [tests/**], noise_patterns: ["*.md"]}
results: s3://bucket/store
sandbox: {backend: bubblewrap, allow_process: true}
agent: {allow_hosts: [api.example.com]}
spending:
  max_cost_usd: 10
  max_cells: 100
  assume_cost_usd: 0.5
  max_requests: 5000
  max_tokens: 1000000
  cell: {max_requests: 50, max_tokens: 100000, max_cost_usd: 0.5}
tries: 2
ranking: {min_coverage: 0.5}
attestation: require
allowance: [docs, README.md]
upstreams:
  main: {base_url: "https://api.example.com/v1", key_env: KEY, models: [m], concurrency: 3,
    requests_per_minute: 60}
judge: {upstream: main, model: m}
ledgers: {folder: rows, routes: {a/b: agent}}
policies: {max_timeout: 1h, max_cases: 5000}
schedules: {nightly: {cron: "30 3 * * mon-fri", timezone: Asia/Kolkata, enabled: true}}
gates: {no-worse: {evaluation: e, baseline: a, candidate: b, margin: 0.03, alpha: 0.1, min_tasks: 5, min_rate: 0.5}}
notifications: {team: {url_env: TEAM_URL, events: [night_failed]}}
execution: {engine: dask, address: "tcp://scheduler:8786"}
dagster: {storage_url: "postgresql://localhost/d", executor: multiprocess}
"""


@pytest.fixture(autouse=True)
def config_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "xdg"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    return home


def write(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + body, encoding="utf-8")
    return path


def config(folder: Path, body: str) -> ProjectConfig:
    return load_project(write(folder / "config.yaml", body)).config


def problems(folder: Path, body: str) -> list[Problem]:
    with pytest.raises(DocumentError) as caught:
        config(folder, body)
    return list(caught.value.problems)


def test_every_key_may_be_left_out(tmp_path: Path) -> None:
    found = config(tmp_path, "")
    assert found == ProjectConfig()
    assert (found.defaults.attempts, found.defaults.max_attempts, found.defaults.concurrency) == (1, 10, 2)
    assert found.defaults.cell_timeout == 1200.0
    resources = found.defaults.resources
    assert (resources.cpus, resources.memory, resources.pids) == (2.0, 4 << 30, 512)
    assert (found.results, found.tries, found.ranking.min_coverage, found.attestation) == (
        ".bench",
        3,
        0.9,
        "report",
    )
    assert (found.sandbox.backend, found.sandbox.allow_process) == ("auto", False)
    assert found.spending.max_cost_usd is None
    assert (found.schedules.nightly.cron, found.schedules.nightly.enabled) == ("17 2 * * *", False)
    assert found.dagster.executor == "in_process"


def test_every_key_may_be_written(tmp_path: Path) -> None:
    found = config(tmp_path, EVERY_KEY)
    assert found.model_fields_set == set(ProjectConfig.model_fields)
    for name in found.model_fields_set - {
        "tries",
        "results",
        "attestation",
        "allowance",
        "dockerfile",
        "upstreams",
        "gates",
        "notifications",
    }:
        section = getattr(found, name)
        assert section.model_fields_set == set(type(section).model_fields), name
    assert found.defaults.resources.memory == 2 << 30
    assert found.upstreams["main"].requests_per_minute == 60
    assert found.ledgers.routes == {"a/b": "agent"}


def test_a_wrong_key_names_the_nearest(tmp_path: Path) -> None:
    found = problems(tmp_path, "default: {}\ndefaults: {atempts: 2}\nsanbox: {}\n")
    assert [(p.line, p.field) for p in found] == [(3, "default"), (4, "defaults.atempts"), (5, "sanbox")]
    for problem, meant in zip(found, ("defaults", "attempts", "sandbox"), strict=True):
        assert f"did you mean {meant}?" in problem.message


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("defaults: {attempts: 0}", "defaults.attempts"),
        ("defaults: {attempts: 11}", "defaults.attempts"),
        ("defaults: {max_attempts: two}", "defaults.max_attempts"),
        ("defaults: {cell_timeout: 12:30}", "defaults.cell_timeout"),
        ("defaults: {cell_timeout: 90}", "defaults.cell_timeout"),
        ("defaults: {resources: {cpus: 0}}", "defaults.resources.cpus"),
        ("defaults: {resources: {memory: 4}}", "defaults.resources.memory"),
        ('results: ""', "results"),
        ("sandbox: {backend: podman}", "sandbox.backend"),
        ("sandbox: {allow_process: yes}", "sandbox.allow_process"),
        ("agent: {allow_hosts: [github.com]}", "agent.allow_hosts[0]"),
        ("agent: {allow_hosts: ['https://x']}", "agent.allow_hosts[0]"),
        ("spending: {max_cost_usd: -1}", "spending.max_cost_usd"),
        ("spending: {max_cost_usd: .nan}", "spending.max_cost_usd"),
        ("spending: {max_cells: 0}", "spending.max_cells"),
        ("spending: {cell: {max_requests: 0}}", "spending.cell.max_requests"),
        ("tries: 0", "tries"),
        ("ranking: {min_coverage: 1.1}", "ranking.min_coverage"),
        ("attestation: on", "attestation"),
        ("upstreams: {a: {base_url: ftp://x}}", "upstreams.a.base_url"),
        ("upstreams: {a: {}}", "upstreams.a.base_url"),
        ("upstreams: {a: {base_url: 'http://x', key_env: a-b}}", "upstreams.a.key_env"),
        ("judge: {upstream: a}", "judge.upstream"),
        ("ledgers: {folder: ../x}", "ledgers.folder"),
        ("schedules: {nightly: {cron: 17 2 * *}}", "schedules.nightly.cron"),
        ("schedules: {nightly: {cron: 61 2 * * *}}", "schedules.nightly.cron"),
        ("schedules: {nightly: {cron: 1 2 * * fri-mon}}", "schedules.nightly.cron"),
        ("schedules: {nightly: {timezone: Europe/Berln}}", "schedules.nightly.timezone"),
        ("schedules: {nightly: {enabled: 1}}", "schedules.nightly.enabled"),
        ("dagster: {executor: dask}", "dagster.executor"),
        ("execution: {engine: dask}", "execution.address"),
        ("execution: {address: 'tcp://a:1'}", "execution.address"),
        ("source: []", "source"),
        ("source:", "source"),
    ],
)
def test_a_wrong_value_names_its_field_and_line(tmp_path: Path, body: str, field: str) -> None:
    (problem,) = problems(tmp_path, body + "\n")
    assert (problem.line, problem.field) == (3, field)


@pytest.mark.parametrize(
    "cron", ["* * * * *", "*/5 0-23/2 1,15 jan-DEC 0", "0 0 31 12 7", "59 23 1 1 sun,tue-sat"]
)
def test_cron_schedules_have_five_fields_in_range(tmp_path: Path, cron: str) -> None:
    assert config(tmp_path, f'schedules: {{nightly: {{cron: "{cron}"}}}}\n').schedules.nightly.cron == cron


def test_the_users_file_lies_below_the_projects(tmp_path: Path, config_home: Path) -> None:
    lower = (
        "defaults: {concurrency: 7, resources: {pids: 9, cpus: 9}}\nupstreams: {a: {base_url: 'http://a'}}\n"
    )
    write(config_home / "ber/bench/config.yaml", lower + "tries: 9\n")
    upper = (
        "defaults: {attempts: 3, resources: {cpus: 1}}\nupstreams: {b: {base_url: 'http://b'}}\ntries: 3\n"
    )
    found = config(tmp_path, upper)
    assert (found.defaults.attempts, found.defaults.concurrency) == (3, 7)
    assert (found.defaults.resources.cpus, found.defaults.resources.pids) == (1.0, 9)
    assert set(found.upstreams) == {"a", "b"}
    assert found.tries == 3, "a default that is written out is an answer, not a gap"


def test_problems_of_both_files_come_together(tmp_path: Path, config_home: Path) -> None:
    lower = write(config_home / "ber/bench/config.yaml", "tires: 3\n")
    found = problems(tmp_path, "tries: 0\n")
    assert {p.file for p in found} == {str(lower), str(tmp_path / "config.yaml")}


def test_a_contradiction_is_told_where_the_field_is_written(tmp_path: Path, config_home: Path) -> None:
    lower = write(config_home / "ber/bench/config.yaml", "defaults:\n  attempts: 5\n")
    (problem,) = problems(tmp_path, "defaults: {max_attempts: 4}\n")
    assert (problem.file, problem.line, problem.field) == (str(lower), 4, "defaults.attempts")
    assert "defaults.max_attempts" in problem.message


def test_the_attempt_axis_has_no_more_partitions_than_dagster_takes(tmp_path: Path) -> None:
    assert MAX_ATTEMPTS * len(TIERS) == 100_000
    (problem,) = problems(tmp_path, "defaults:\n  max_attempts: 25001\n")
    assert (problem.file, problem.line) == (str(tmp_path / "config.yaml"), 4)
    assert problem.field == "defaults.max_attempts"
    assert problem.message.startswith("is 25001, more than 25000: every tier and attempt is a partition")


def test_a_relative_xdg_config_home_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_dir() == tmp_path / ".config" / "ber" / "bench"


def test_the_store_is_a_path_below_the_project_or_a_url(tmp_path: Path) -> None:
    project = load_project(write(tmp_path / "config.yaml", ""))
    assert project.store_url == str(tmp_path / ".bench")
    assert project.local_dir == tmp_path / ".bench"
    project = load_project(write(tmp_path / "config.yaml", "results: /var/lib/bench\n"))
    assert project.store_url == "/var/lib/bench"
    project = load_project(write(tmp_path / "config.yaml", "results: memory://bench\n"))
    assert project.store_url == "memory://bench"
