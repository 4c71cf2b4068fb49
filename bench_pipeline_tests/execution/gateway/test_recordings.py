"""The two forms of a recording, and the form in which two requests are compared."""

import errno
import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import StoreError
from bench_pipeline.execution.gateway.masking import Masks, differences, digest
from bench_pipeline.execution.gateway.recordings import Exchange, RecordingFile, pack, read_file, unpack
from bench_pipeline.execution.gateway.replaying import DivergedError, Replay

CHAT = "/chat/completions"


def exchange(number: int, request: bytes = b"{}", answer: bytes = b"done", path: str = CHAT) -> Exchange:
    return Exchange(number, path, "m", "up", 200, "application/json", request, answer)


def said(number: int, *texts: str, answer: str = "", **fields: object) -> Exchange:
    """A request of a conversation in which ``texts`` were said."""
    body = {"messages": [{"role": "user", "content": text} for text in texts], **fields}
    return exchange(number, json.dumps(body).encode(), answer.encode() or f"answer {number}".encode())


def ask(replay: Replay, *texts: str, **fields: object) -> str:
    return replay.answer(CHAT, json.loads(said(0, *texts, **fields).request)).answer.decode()


def replay_of(*exchanges: Exchange, **masks: object) -> Replay:
    return Replay(lambda: exchanges, Masks(**masks), Masks(**masks))  # type: ignore[arg-type]


class TestKeeping:
    @given(
        st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=60)), max_size=20),
        st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    )
    def test_everything_comes_back_as_it_was(self, bodies, folders):
        exchanges = [exchange(number, *both) for number, both in enumerate(bodies, 1)]
        about, found = unpack(pack(exchanges, {"folders": folders}))
        assert (about, list(found)) == ({"folders": folders}, exchanges)

    def test_a_long_conversation_takes_little_more_than_its_last_request(self):
        texts = [f"{number:04d}" * 400 for number in range(200)]
        talk = [said(number, *texts[:number]) for number in range(1, 201)]
        packed = pack(talk, {})
        assert len(packed) < len(talk[-1].request) / 4 < sum(len(each.request) for each in talk) / 400
        assert list(unpack(packed)[1]) == talk

    def test_the_file_keeps_every_whole_exchange_however_it_was_cut(self, tmp_path: Path):
        file = RecordingFile(tmp_path / "recording")
        exchanges = [exchange(number, b"ask\n" * number, b"\n{}") for number in (2, 1, 3)]
        for each in exchanges:
            file.append(each)
        file.close()
        data = (tmp_path / "recording").read_bytes()
        (tmp_path / "cut").write_bytes(data[:-1])
        assert list(read_file(tmp_path / "recording")) == exchanges
        assert list(read_file(tmp_path / "cut")) == exchanges[:2]

    def test_a_recording_without_end_ends_and_what_came_before_is_kept(self, tmp_path: Path):
        exchanges = [exchange(number, b"%d" % number * 1000) for number in range(1, 10)]
        file = RecordingFile(tmp_path / "recording", most=5000)
        for each in exchanges:
            file.append(each)
        file.close()
        assert list(read_file(tmp_path / "recording")) == exchanges[:4]
        assert list(unpack(pack(exchanges, {}, most=3000))[1]) == exchanges[:2]

    def test_a_full_disk_ends_the_recording_and_not_the_cell(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        file, write = RecordingFile(tmp_path / "recording"), os.writev

        def full(where: int, parts: list[bytes]) -> int:
            if b'"number":2' in parts[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(where, parts)

        monkeypatch.setattr(os, "writev", full)
        for number in (1, 2, 3):
            file.append(exchange(number))
        file.close()
        assert list(read_file(tmp_path / "recording")) == [exchange(1)]

    @pytest.mark.parametrize("packed", [b"", b"zz", pack([exchange(1)], {})[:-9]], ids=["no", "other", "cut"])
    def test_what_no_recording_is_gives_one_clear_error(self, packed):
        with pytest.raises(StoreError, match="record the cell again"):
            list(unpack(packed)[1])

    def test_a_summary_names_the_bodies_by_their_digests(self):
        summary = exchange(1).summary()
        assert (summary["answer_bytes"], summary["answer_sha256"]) == (4, sha256(b"done").hexdigest())
        assert "answer" not in summary


class TestMasking:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("at 2026-11-30T02:10:11.123Z", "at 2026-12-01T03:11:12Z"),
            ("Today's date: 2026-11-30", "Today's date: 2026-12-01"),
            ("-rw-r--r-- 1 u u 5 Nov 30 02:10 a", "-rw-r--r-- 1 u u 5 Dec  1 02:33 a"),
            ("Mon Nov 30 02:10:11 UTC 2026", "Tue Dec  1 02:33:44 UTC 2026"),
            ("Ran 2 tests in 0.013s", "Ran 2 tests in 1.250s"),
            ("7e57d004-2b97-4e7a-b45f-5387367791cd", "0b7c0c52-9a55-4cbb-8a0b-1d1bd3b7a8a1"),
        ],
    )
    def test_what_a_clock_or_chance_makes_is_the_same(self, one, other):
        masks = Masks()
        assert one != other
        assert masks({"input": one}) == masks({"input": other})

    @pytest.mark.parametrize("text", ["version 1.2.3", "2026 files", "12 seconds", "May I?", "a-b-c"])
    def test_other_texts_are_left_as_they_are(self, text):
        assert Masks()({"input": text}) == {"input": text}

    def test_who_asks_is_left_out_and_so_is_what_a_tool_names(self):
        body = {"metadata": {"user_id": "u"}, "input": [{"id": "a", "say": "x", "metadata": 1}, 7], "n": None}
        assert Masks(fields=("input.id",))(body) == {"input": [{"say": "x", "metadata": 1}, 7], "n": None}

    def test_texts_of_a_tool_and_the_folders_of_a_cell_are_masked(self):
        one = Masks(texts=("Chunk [0-9a-f]+",), folders={"<tree>": "/w/1/tree", "<w>": "/w/1"})
        other = Masks(texts=("Chunk [0-9a-f]+",), folders={"<tree>": "/w/2/tree", "<w>": "/w/2"})
        assert one({"input": "Chunk 0a /w/1/tree/a"}) == other({"input": "Chunk ff /w/2/tree/a"})

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        )
    )
    def test_requests_have_one_digest_exactly_if_they_do_not_differ(self, value):
        one, other = {"input": value}, {"input": [value]}
        assert list(differences(one, json.loads(json.dumps(one)))) == []
        assert list(differences(one, other))
        assert digest(one) != digest(other)


class TestReplaying:
    def test_the_same_requests_get_the_same_answers_in_their_order(self):
        replay = replay_of(said(1, "a"), said(2, "a"), said(3, "a", "b"))
        assert [ask(replay, "a"), ask(replay, "a"), ask(replay, "a", "b")] == [
            "answer 1",
            "answer 2",
            "answer 3",
        ]
        assert replay.unasked() is None

    def test_conversations_side_by_side_may_take_turns_in_another_order(self):
        tools = [{"name": "bash"}]
        recording = [said(1, "fix", tools=tools), said(2, "title"), said(3, "fix", "ran", tools=tools)]
        replay = replay_of(*recording)
        asked = [
            ask(replay, "title"),
            ask(replay, "fix", tools=tools),
            ask(replay, "fix", "ran", tools=tools),
        ]
        assert asked == ["answer 2", "answer 1", "answer 3"]

    def test_a_divergence_names_the_request_the_place_and_both_sides(self):
        replay = replay_of(said(1, "fix"), said(2, "fix", "one"), said(3, "fix", "one", "two"))
        ask(replay, "fix")
        ask(replay, "fix", "one")
        with pytest.raises(DivergedError) as caught:
            ask(replay, "fix", "one", "too")
        assert str(caught.value) == (
            "request 3 differs from request 3 of the recording at messages[2].content: "
            'recorded "two", now "too"'
        )

    def test_a_divergence_is_looked_for_in_the_conversation_that_it_continues(self):
        tools = [{"name": "bash"}]
        replay = replay_of(said(1, "fix", tools=tools), said(2, "title"), said(3, "fix", "ran", tools=tools))
        ask(replay, "fix", tools=tools)
        with pytest.raises(DivergedError, match=r"request 2 differs from request 3 .* messages\[1\]"):
            ask(replay, "fix", "failed", tools=tools)

    @pytest.mark.parametrize(
        ("texts", "fields", "words"),
        [
            (("a",), {}, "is asked more often than in the recording, where it is request 1"),
            (("a",), {"effort": "high"}, 'at effort: recorded "nothing", now "high"'),
            (("a", "b"), {}, r'at messages\[1\]: recorded "nothing", now'),
        ],
        ids=["again", "a field", "a message"],
    )
    def test_every_kind_of_difference_is_told(self, texts, fields, words):
        replay = replay_of(said(1, "a"))
        ask(replay, "a")
        with pytest.raises(DivergedError, match=words):
            ask(replay, *texts, **fields)

    def test_another_api_is_a_difference(self):
        with pytest.raises(DivergedError, match="asks /responses, which nothing in the recording does"):
            replay_of(said(1, "a")).answer("/responses", {"input": "a"})

    def test_a_recorded_request_that_is_not_asked_is_told_but_for_side_requests(self):
        tools = [{"name": "bash"}]
        replay = replay_of(said(1, "fix", tools=tools), said(2, "title"), said(3, "fix", "ran", tools=tools))
        ask(replay, "fix", tools=tools)
        assert replay.unasked() == "request 3 of the 3 in the recording was not asked again"
        ask(replay, "fix", "ran", tools=tools)
        assert replay.unasked() is None
