"""What is told to whom: each flip and each failed night once, also when a target is down, and never a URL."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench_pipeline.errors import DocumentError
from bench_pipeline.pipeline import notifying
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.notifying import MOST_TRIES, notify, target_states, try_targets
from bench_pipeline.providers.messenger import Delivery, Message
from bench_pipeline.reports.messages import FailedRun, Night
from bench_pipeline_tests.listening import Listener, listening
from bench_pipeline_tests.outcomes import Results
from bench_pipeline_tests.reports.documents import empty_project, score, write_outcomes, write_rows

HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: Project\n"
TARGETS = (
    "notifications: {team: {url_env: TEAM_URL}, nights: {url_env: NIGHTS_URL, events: [night_failed]}}\n"
)
GATE = "gates: {no-worse: {evaluation: nightly, baseline: old, candidate: new, margin: 0.5}}\n"
DAY_S = 86_400.0


class Post:
    """Stands for the process that sends: what each URL took, and whether it takes anything."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, Message]] = []
        self.problem: str | None = None

    def deliver(self, url: str, messages: Sequence[Message]) -> Delivery:
        if self.problem:
            return Delivery(0, self.problem)
        self.taken += [(url, message) for message in messages]
        return Delivery(len(messages))

    @property
    def titles(self) -> list[str]:
        return [message.title for _, message in self.taken]


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Post:
    found = Post()
    monkeypatch.setattr(notifying, "deliver", found.deliver)
    monkeypatch.setenv("TEAM_URL", "json://team")
    monkeypatch.setenv("NIGHTS_URL", "json://nights")
    return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return project(tmp_path / "mine", TARGETS)


def project(folder: Path, config: str) -> Bench:
    bench = empty_project(folder)
    (folder / "config.yaml").write_text(HEAD + config)
    return bench


def tick(bench: Bench, *nights: Night, now: float = 0.0) -> str:
    """A look of a process of its own, which knows only what the store knows."""
    return notify(
        bench.again(), lambda after: [each for each in nights if after is None or each.name > after], now
    )


def write_score(bench: Bench, value: float, **facts: object) -> None:
    write_rows(bench, "composite_scores", [score("large", 1, value, **facts)], attempt=1)


def night(day: int, *, failed: bool = True) -> Night:
    runs = (FailedRun("evaluate", "permanent", "r1", "a document does not parse"),) if failed else ()
    return Night(f"2026-05-{day:02} 02:17", runs)


def test_a_safety_gate_that_closes_or_opens_is_told_once_with_numbers_and_reason(
    bench: Bench, post: Post
) -> None:
    write_score(bench, 0.7)
    tick(bench)
    write_score(bench, 0.0, passed=1, reasons=["safety 0: tests that passed fail after it (one)", "other"])
    tick(bench)
    tick(bench)
    ((url, message),) = post.taken
    assert (url, message.title, message.bad) == ("json://team", "mine: 1 gate flipped, 1 to failed", True)
    assert message.text == (
        "Safety of large, attempt 1, over smoke, standard: passed before, fails now. "
        "safety 0: tests that passed fail after it (one). "
        "Now score 0.0000, 1 of 3 tasks passed; before score 0.7000, 2 of 3 tasks passed. "
        "More: bench golden run --no-save --setup large --attempt 1"
    )
    write_score(bench, 0.8)
    tick(bench)
    assert post.titles[1:] == ["mine: 1 gate flipped, 0 to failed"]


def test_what_is_known_at_first_is_told_to_nobody(bench: Bench, post: Post) -> None:
    write_score(bench, 0.0)
    assert tick(bench, night(1)) == "0 messages sent"
    assert not post.taken


def test_a_gate_that_cannot_decide_flips_when_it_next_decides_otherwise(bench: Bench, post: Post) -> None:
    for value, facts in (
        (0.7, {}),
        (0.7, {"complete": False}),
        (0.0, {"tasks": 0, "safety": None}),
        (0.8, {}),
    ):
        write_score(bench, value, **facts)
        tick(bench)
    assert not post.taken
    write_score(bench, 0.0, complete=False)
    tick(bench)
    assert post.titles == ["mine: 1 gate flipped, 1 to failed"], "missing tasks cannot open a closed gate"


def test_a_new_version_of_a_setup_is_compared_with_the_old_one(bench: Bench, post: Post) -> None:
    for digest, value in (("one", 0.7), ("two", 0.0)):
        write_score(bench, value, setup_digest=digest)
        tick(bench)
    assert post.titles == ["mine: 1 gate flipped, 1 to failed"]


def outcomes(candidate: bool) -> Results:
    tasks = [f"t{n}" for n in range(12)]
    return {"old": {task: [True] for task in tasks}, "new": {task: [candidate] for task in tasks}}


def test_a_comparison_that_the_config_names_is_told_with_its_interval_and_command(
    tmp_path: Path, post: Post
) -> None:
    bench = project(tmp_path / "mine", TARGETS + GATE)
    for candidate in (True, False):
        write_outcomes(bench, outcomes(candidate))
        tick(bench)
    ((_, message),) = post.taken
    assert message.text.startswith("no-worse: new against old in nightly: passed before, fails now.")
    assert "Now -100.0 points" in message.text
    assert "over 12 shared tasks; before +0.0 points" in message.text
    assert message.text.endswith("More: bench gate nightly --baseline old --candidate new --margin 0.5")


def test_a_comparison_of_setups_that_are_not_there_stops_nothing(tmp_path: Path, post: Post) -> None:
    bench = project(tmp_path / "mine", TARGETS + GATE)
    for value in (0.7, 0.0):
        write_score(bench, value)
        tick(bench)
    assert len(post.taken) == 1


def test_a_failed_night_is_one_message_for_each_who_wants_it(bench: Bench, post: Post) -> None:
    tick(bench)
    for _ in range(3):
        tick(bench, night(1), night(2, failed=False))
    assert sorted(post.taken, key=lambda each: each[0]) == [
        (url, post.taken[0][1]) for url in ("json://nights", "json://team")
    ]
    assert "evaluate failed, permanent: a document does not parse" in post.taken[0][1].text
    tick(bench, night(1), night(2, failed=False), night(3))
    assert len(post.taken) == 4


def test_a_target_that_is_down_gets_the_message_once_it_is_up(bench: Bench, post: Post) -> None:
    tick(bench)
    post.problem = "the server answered 500"
    assert tick(bench, night(1)) == (
        "0 messages sent; 2 messages waiting; nights: the server answered 500; team: the server answered 500"
    )
    post.problem = None
    assert tick(bench, now=59.0).startswith("0 messages sent; 2 messages waiting"), (
        "it is left alone for a minute"
    )
    assert tick(bench, now=60.0) == "2 messages sent"
    assert tick(bench, now=DAY_S) == "0 messages sent"


def test_a_target_that_stays_down_is_tried_within_bounds(bench: Bench, post: Post) -> None:
    tick(bench)
    post.problem = "no connection, or no answer"
    tick(bench, night(1))
    for tries in range(1, MOST_TRIES):
        tick(bench, now=tries * DAY_S)
    states = target_states(bench)
    assert [(each.waiting, each.given_up, each.problem) for each in states] == 2 * [
        (0, 1, "no connection, or no answer")
    ]


def test_what_waits_for_a_target_has_an_upper_bound(bench: Bench, post: Post) -> None:
    tick(bench)
    post.problem = "no connection, or no answer"
    for number in range(60):
        tick(bench, Night(f"2026-05-01 {number:02}", night(1).failed))
    assert [(each.waiting, each.given_up) for each in target_states(bench)] == [(50, 10)] * 2


def test_a_target_whose_variable_is_not_set_is_said_by_the_name_of_that(
    bench: Bench, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NIGHTS_URL")
    tick(bench)
    assert tick(bench, night(1)) == "1 message sent; 1 message waiting; nights: NIGHTS_URL is not set"


def test_a_damaged_state_is_made_anew_and_tells_nothing(bench: Bench, post: Post) -> None:
    tick(bench)
    bench.store.files.write("notifications/state.json", b'{"waiting": 3')
    assert tick(bench, night(1)) == "0 messages sent"
    tick(bench, night(1), night(2))
    assert len(post.taken) == 2


def test_without_targets_nothing_is_looked_at(tmp_path: Path, post: Post) -> None:
    bench = project(tmp_path / "mine", "")
    assert tick(bench, night(1)) == "no target of notifications is configured"
    assert not bench.store.files.list("notifications")


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (
            "notifications: {team: {url_env: 'json://u:hush-hush-secret@host'}}\n",
            "notifications.team.url_env",
        ),
        (
            "upstreams: {a: {base_url: 'https://a.example', key_env: sk-hush-hush-secret}}\n",
            "upstreams.a.key_env",
        ),
    ],
)
def test_a_secret_in_the_place_of_a_variable_is_refused_without_being_shown(
    tmp_path: Path, config: str, field: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        _ = project(tmp_path / "mine", config).project
    (problem,) = refused.value.problems
    assert problem.field == field
    assert "hush" not in str(refused.value)


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    with listening() as found:
        monkeypatch.setenv("TEAM_URL", found.url("ok"))
        monkeypatch.setenv("NIGHTS_URL", found.url("broken"))
        yield found


def test_real_targets_are_told_side_by_side_and_their_urls_are_in_no_file(
    bench: Bench, listener: Listener
) -> None:
    tick(bench)
    assert tick(bench, night(1)) == "1 message sent; 1 message waiting; nights: the server answered 500"
    assert [each["title"] for each in listener.taken] == [
        "mine: the night that began at 2026-05-01 02:17 failed"
    ]
    assert try_targets(bench) == {"team": Delivery(1), "nights": Delivery(0, "the server answered 500")}
    files = [path for path in bench.project.root.rglob("*") if path.is_file()]
    assert [path for path in files if b"hush-hush-secret" in path.read_bytes()] == []
    assert any(path.name == "state.json" for path in files)
