"""Inspect: one sample of an evaluation log, ``.json`` or ``.eval`` (a zip, of Zstandard members since 2025)."""

import io
import zipfile
from collections.abc import Mapping

from bench_pipeline.execution.usage.reading import Object, count, items, json_value, mapping, text
from bench_pipeline.scenarios.importers.imported import Event, Imported, Transcript, Unmapped, from_iso, step

_ZSTANDARD = 93
_MAX_MEMBER_BYTES = 512 << 20
_LOCAL_HEADER = 30


def read(transcript: Transcript) -> Imported:
    """Steps are tool calls, and model answers that call none.

    Raises ValueError in words when the log holds several samples and none of them was chosen, or no such one.
    """
    model, samples = _samples(transcript.outputs.read("log") or b"")
    sample = _chosen(samples, transcript.which)
    unmapped, steps = Unmapped(), list[Event]()
    for event in map(mapping, items(sample.get("events"))):
        _take(event, steps, unmapped)
    seconds = sample.get("total_time")
    whole = int(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1 << 40 else None
    finished = from_iso(sample.get("completed_at"))
    for name in ("scores", "limit", "attachments", "store"):
        if sample.get(name):
            unmapped.add(f"the sample's {name}")
    return Imported(
        harness="inspect",
        model=model,
        started_at=from_iso(sample.get("started_at")),
        events=(*steps, *_closing(sample)),
        end={"type": "end", "time": finished, "seconds": whole} if finished or whole is not None else None,
        unmapped=unmapped.listed(),
        failure=text(mapping(sample.get("error")).get("message")),
    )


def _take(event: Object, steps: list[Event], unmapped: Unmapped) -> None:
    kind, at = event.get("event"), from_iso(event.get("timestamp"))
    if kind == "tool":
        given = mapping(event.get("arguments"))
        summary = next((text(value) or "" for value in given.values() if isinstance(value, str)), "")
        steps.append(step(text(event.get("function")), summary, at))
    elif kind == "model":
        choices = items(mapping(event.get("output")).get("choices"))
        message = mapping(mapping(choices[0] if choices else None).get("message"))
        if event.get("error"):
            unmapped.add("model calls that failed")
        elif not items(message.get("tool_calls")):
            steps.append(step(None, _words(message.get("content")), at))
    else:
        unmapped.add(f"events of type {text(kind)}")


def _closing(sample: Object) -> list[Event]:
    events: list[Event] = []
    choices = items(mapping(sample.get("output")).get("choices"))
    answer = _words(mapping(mapping(choices[0] if choices else None).get("message")).get("content"))
    if answer:
        events.append({"type": "artifact", "text": answer})
    for usage in map(mapping, mapping(sample.get("model_usage")).values()):
        kinds = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
        parts = [count(usage.get(name)) for name in kinds]
        prompt = None if parts[0] is None else sum(part or 0 for part in parts)
        completion = count(usage.get("output_tokens"))
        events.append({"type": "usage", "prompt_tokens": prompt, "completion_tokens": completion})
    return events


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(mapping(part).get("text")) or "" for part in items(content)).strip()


def _samples(data: bytes) -> tuple[str | None, Mapping[str, Object]]:
    """The model and the samples of a log by ``id/epoch``."""
    if data.startswith(b"PK"):
        members = _members(data)
        header = mapping(json_value(members.get("header.json") or members.get("_journal/start.json") or b""))
        samples = [mapping(json_value(body)) for name, body in members.items() if name.startswith("samples/")]
    else:
        header = mapping(json_value(data))
        samples = [mapping(sample) for sample in items(header.get("samples"))]
    model = text(mapping(header.get("eval")).get("model"))
    return model, {f"{sample.get('id')}/{sample.get('epoch')}": sample for sample in samples}


def _members(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            wanted = [
                info
                for info in archive.infolist()
                if info.filename.startswith("samples/")
                or info.filename in {"header.json", "_journal/start.json"}
            ]
            return {info.filename: _member(data, archive, info) for info in wanted}
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError) as error:
        raise ValueError(f"the log is a zip that cannot be read: {error}") from None


def _member(data: bytes, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """One member; the standard library reads no Zstandard before Python 3.14, Arrow does."""
    if info.file_size > _MAX_MEMBER_BYTES:
        raise ValueError(f"{info.filename} of the log is larger than {_MAX_MEMBER_BYTES} bytes")
    if info.compress_type != _ZSTANDARD:
        return archive.read(info)
    import pyarrow as pa

    start = info.header_offset + _LOCAL_HEADER
    lengths = data[start - 4 : start]
    start += int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    packed = data[start : start + info.compress_size]
    return bytes(pa.decompress(packed, decompressed_size=info.file_size, codec="zstd", asbytes=True))


def _chosen(samples: Mapping[str, Object], which: str | None) -> Object:
    found = [name for name in samples if which is None or which in {name, name.rpartition("/")[0]}]
    if len(found) == 1:
        return samples[found[0]]
    listed = ", ".join(sorted(samples)[:20]) or "none"
    if not found:
        raise ValueError(f"the log has no sample{'' if which is None else ' ' + which}; samples: {listed}")
    raise ValueError(f"the log has several samples; choose one with --sample: {listed}")
