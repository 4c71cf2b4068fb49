"""Policies over 5,000 cases against a bare loop, and live calls against what the server and a bare client allow.

Inspect AI and promptfoo are no dependencies; where they are installed (the variables BENCH_INSPECT_PYTHON and
BENCH_PROMPTFOO name an interpreter and a program) whole processes are compared with theirs. The limits of the bare
loop say the same by what these took beside it: 0.24 s against 189 s of Inspect.
"""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench_pipeline.policies.cases import CaseSet, read_cases
from bench_pipeline.policies.comparing import Terms, run_attempt
from bench_pipeline.policies.live import LiveModel
from bench_pipeline.policies.models import Settings
from bench_pipeline.policies.policy import POLICIES
from bench_pipeline.providers.endpoint import read_endpoint
from bench_pipeline_tests.benchmarks import Row, best_of, server_process

CASES, CALLS = 5000, 4000
_HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
_PROMPT = "What is {0} plus {0}? Answer with a number only."

_BARE = """
import json, sys
cases, recording = (json.load(open(name)) for name in sys.argv[1:])
responses, right = recording["responses"], 0
for shown in (False, False, True):
    cursor = {}
    for case in cases:
        prompt = case["Prompt"] + ("\\n\\nEvidence:\\n" + "\\n".join(case["Evidence"]) if shown else "")
        at = cursor.get(prompt, 0)
        cursor[prompt] = at + 1
        right += responses[prompt][at]["answer"].strip().lower() == case["Expected"].strip().lower()
print(right)
"""
_ASSETS = """
import sys, tempfile
from pathlib import Path
import dagster as dg
from bench_pipeline.definitions import build_defs
from bench_pipeline.pipeline.bench import Bench
job = build_defs({"bench": Bench(Path(sys.argv[1]))}).resolve_job_def("score")
done = job.execute_in_process(
    instance=dg.DagsterInstance.ephemeral(),
    tags={"dagster/asset_partition_range_start": "1", "dagster/asset_partition_range_end": "1"},
    run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
)
assert done.success
"""
_INSPECT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate
cases = [Sample(id=str(i), input=f"What is {i} plus {i}?", target=str(2 * i)) for i in range(int(sys.argv[1]))]
task = Task(dataset=MemoryDataset(cases), solver=generate(), scorer=match())
eval(task, model="mockllm/model", epochs=3, display="none", log_dir=sys.argv[2])
"""


def measure() -> list[Row]:
    """Whole processes, assets, live calls; and the peers that are installed."""
    with tempfile.TemporaryDirectory(prefix="bench-policies-") as name:
        folder = Path(name)
        _write_project(folder)
        files = [str(folder / "policies" / f"{name}.json") for name in ("cases", "recording")]

        def ours() -> None:
            words = ["--cases", files[0], "--recording", files[1], "--budget", "10000", "--project", name]
            _process(sys.executable, "-m", "bench_pipeline", "policy", "run", *words)

        def bare() -> None:
            _process(sys.executable, "-c", _BARE, *files)

        def assets() -> None:
            for table in folder.glob(".bench/tables/**/part.parquet"):
                table.unlink()
            _process(sys.executable, "-c", _ASSETS, name)

        what = f"policies: {CASES} cases x 3"
        run_s, bare_s, assets_s = best_of(3, ours), best_of(3, bare), best_of(3, assets)
        return [
            Row(f"{what} over a recording / a bare loop (processes)", run_s, bare_s, 8.0),
            Row(f"{what} through the assets / a bare loop (processes)", assets_s, bare_s, 26.0),
            *_live(read_cases(Path(files[0]), CASES)),
            *_peers(folder, run_s, assets_s),
        ]


def _process(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _write_project(folder: Path) -> None:
    policies = folder / "policies"
    policies.mkdir()
    (folder / "config.yaml").write_text(f"{_HEAD}kind: Project\npolicies: {{max_cases: {CASES}}}\n")
    (policies / "sums.yaml").write_text(
        f"{_HEAD}kind: PolicyComparison\ncases: cases.json\nrecording: recording.json\nbudget: 10000\n"
    )
    cases, responses = [], {}
    for number in range(CASES):
        prompt, answer, note = _PROMPT.format(number), str(2 * number), f"{number} + {number} = {2 * number}"
        cases.append({"ID": f"q{number}", "Prompt": prompt, "Expected": answer, "Evidence": [note]})
        responses[prompt] = [{"answer": answer if number % 3 else "0"}]
        responses[f"{prompt}\n\nEvidence:\n{note}"] = [{"answer": answer}]
    (policies / "cases.json").write_text(json.dumps(cases))
    settings = {"temperature": 0, "max_tokens": 8}
    recording = {"kind": "authored_fixture", "model": "m", "settings": settings, "responses": responses}
    (policies / "recording.json").write_text(json.dumps(recording))


def _live(cases: CaseSet) -> list[Row]:
    asked = CaseSet(cases.cases[:CALLS], cases.sha256)
    rows = []
    with server_process(_serve, 0.05) as port:
        # A hundred calls in flight of 50 ms each: 2,000 a second and no more.
        ours = best_of(3, lambda: _ask(asked, port, 100))
        rows.append(
            Row(f"policies: {CALLS} calls of 50 ms, 100 in flight / the server", ours, CALLS / 2000, 1 / 0.85)
        )
    with server_process(_serve, 0.0) as port:
        turns = [
            (best_of(1, lambda: _ask(asked, port, 32)), best_of(1, lambda: _ask_barely(asked, port, 32)))
            for _ in range(3)
        ]
        rows.append(
            Row(
                f"policies: {CALLS} calls, 32 in flight / threads that only call",
                *map(min, zip(*turns, strict=True)),
                2.0,
            )
        )
    return rows


def _ask(cases: CaseSet, port: int, concurrency: int) -> None:
    endpoint = read_endpoint(f"http://127.0.0.1:{port}/v1/chat/completions")
    model = LiveModel(endpoint, "m", Settings(temperature=0, max_tokens=8), None, concurrency)
    (result,) = run_attempt(cases, model, Terms(10_000, 300, POLICIES[:1]), 1).results
    assert (len(result.tally.calls), result.tally.errors) == (CALLS, 0)


def _ask_barely(cases: CaseSet, port: int, concurrency: int) -> None:
    """The same calls without deadlines, checks or order."""
    prompts, lock = iter([case.prompt for case in cases.cases]), threading.Lock()

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                prompt = next(prompts, None)
            if prompt is None:
                connection.close()
                return
            body = {
                "model": "m",
                "messages": [{"role": "user", "content": prompt}],
                "temperature": 0,
                "max_tokens": 8,
            }
            connection.request(
                "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
            )
            assert json.loads(connection.getresponse().read())["choices"][0]["message"]["content"]

    threads = [threading.Thread(target=work) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Answering(asyncio.Protocol):
    """As little of HTTP as these clients need, so that the server is not what is measured."""

    message = json.dumps({"choices": [{"message": {"role": "assistant", "content": "84"}}]}).encode()
    response = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(message), message)

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            self._received = b""
            asyncio.get_running_loop().call_later(self._delay_s, self._answer)

    def _answer(self) -> None:
        assert isinstance(self._transport, asyncio.WriteTransport)
        self._transport.write(self.response)


def _serve(delay_s: float, port: object) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(
            lambda: _Answering(delay_s), "127.0.0.1", 0, backlog=512
        )
        port.send(server.sockets[0].getsockname()[1])  # type: ignore[attr-defined]
        await server.serve_forever()

    asyncio.run(serve())


def _peers(folder: Path, run_s: float, assets_s: float) -> list[Row]:
    rows = []
    if python := os.environ.get("BENCH_INSPECT_PYTHON"):
        inspect_s = _timed(lambda: _process(python, "-c", _INSPECT, str(CASES), str(folder / "logs")))
        rows += [
            Row(
                f"policies: {CASES} cases x 3 over a recording / Inspect's mock model",
                run_s,
                inspect_s,
                1 / 100,
            ),
            Row(
                f"policies: {CASES} cases x 3 through the assets / Inspect's mock model",
                assets_s,
                inspect_s,
                1 / 30,
            ),
        ]
    if program := os.environ.get("BENCH_PROMPTFOO"):
        tests = [{"vars": {"q": _PROMPT.format(number)}} for number in range(CASES)]
        config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": tests}
        (folder / "promptfoo.json").write_text(json.dumps(config))
        words = ("eval", "-c", str(folder / "promptfoo.json"), "--no-cache", "--no-write", "--no-table")
        promptfoo_s = _timed(lambda: _process(program, *words, "-o", str(folder / "promptfoo-out.json")))
        rows.append(
            Row(f"policies: {CASES} cases x 3 over a recording / promptfoo's echo", run_s, promptfoo_s, 1 / 5)
        )
    return rows


def _timed(call: Callable[[], None]) -> float:
    """One run: these take minutes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
