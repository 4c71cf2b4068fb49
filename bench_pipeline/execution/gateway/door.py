"""One cell's door in the gateway: what its agent asks is checked, paid for, sent, counted, and answered.

What belongs here: a request from the agent's first byte to the last one of its answer. What does not: sockets and
processes (``process``). Answers pass as they come, an event at a time; one whose agent went away is read to its end all
the same, because it is paid for. Nothing that an upstream says reaches an agent with a key in it.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import aiohttp
from aiohttp import web

from bench_pipeline.execution.gateway.accounts import Account, Amount, CapReachedError, Till
from bench_pipeline.execution.gateway.apis import (
    Api,
    StreamUse,
    Use,
    api_at,
    events_in,
    failure_in,
    failure_of,
)
from bench_pipeline.execution.gateway.conversations import Conversations, input_alone
from bench_pipeline.execution.gateway.ledger import LedgerFile
from bench_pipeline.execution.gateway.recordings import Exchange, RecordingFile
from bench_pipeline.execution.gateway.replaying import DivergedError, Replay
from bench_pipeline.execution.gateway.upstreams import Upstream
from bench_pipeline.execution.redaction import Redactor
from bench_pipeline.execution.usage.reading import Object, json_bytes, json_value, mapping
from bench_pipeline.providers.retrying import LONGEST_WAIT_S, TRIES
from bench_pipeline.registry.pricing import ModelPrice
from bench_pipeline.registry.tokens import TokenCounts

MAX_BODY = 64 << 20
# The most tokens of an answer that its request does not bound, where a cap needs a bound.
DEFAULT_BOUND = 32_000
_MAX_ERROR = 64 << 10
_PASSING = ("rate", "overload")
# The class of a recorded answer with which a cap turned a request away.
CAP = "cap"
EVENTS = "text/event-stream"
_STREAM = {"content-type": EVENTS, "cache-control": "no-cache"}
_NOTHING_USED = Use(TokenCounts(0, 0, 0, 0), 0)
# Both vendors' clients do not ask again when an answer says so; the gateway has done that already.
_FINAL = {"x-should-retry": "false"}


@dataclass(frozen=True)
class ModelRoute:
    """Where requests for a model go, and what they cost."""

    upstream: Upstream
    price: ModelPrice | None


@dataclass(frozen=True)
class Asked:
    """A request that may be sent, the ``number``-th of its cell's use of a tool.

    ``raw`` is what the agent sent, ``body`` what is sent on; ``wants_use``: the agent asked for the use itself;
    ``conversation`` names it for requests that go on from it.
    """

    number: int
    api: Api
    model: str
    route: ModelRoute
    raw: bytes
    body: bytes
    stream: bool
    wants_use: bool
    held: Amount
    most: TokenCounts
    conversation: bytes | None
    offers_tools: bool


class RefusedRequestError(Exception):
    """A request that is not sent, with the status that says so."""

    def __init__(self, status: int, why: str, api: Api | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.api = api


@dataclass
class Answer:
    """What came of one sending: its status, what it used (None: nobody knows), and what went wrong.

    ``begun``: the agent has some of it, so that it cannot be asked for again. ``parts`` are what was streamed of it,
    where that is recorded.
    """

    status: int | None = None
    use: Use | None = None
    failure: str | None = None
    told: str | None = None
    body: bytes = b""
    parts: list[bytes] = field(default_factory=list)
    media: str = "application/json"
    begun: web.StreamResponse | None = None
    wait_s: float | None = None
    sent: bool = True
    seconds: float | None = None


@dataclass
class Door:
    """A cell's door.

    Args:
        token: what the agent sends as its key.
        apis: the APIs that its tool speaks.
        models: the models that it may use.
        accounts: the cell's and the run's.
        till: holds amounts on them.
        ledger: where everything is written.
        client: the connections to upstreams.
        redactor: takes keys out of answers.
        conversations: what the cell's answered requests took.
        first_wait_s: the pause after a first failure; it doubles.
        recording: where what was asked and answered is kept, if it is.
        replay: what answers in place of the upstreams, in a replay.
    """

    token: str
    apis: tuple[str, ...]
    models: Mapping[str, ModelRoute]
    accounts: tuple[Account, ...]
    till: Till
    ledger: LedgerFile
    client: aiohttp.ClientSession
    redactor: Redactor
    conversations: Conversations
    first_wait_s: float
    recording: RecordingFile | None = None
    replay: Replay | None = None
    _number: int = 0
    _asked_before: int = 0
    _under_way: set["asyncio.Task[Any]"] = field(default_factory=set)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, in a task of its own that goes on when the agent goes away."""
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        try:
            return await self._answer(request)
        finally:
            self._under_way.discard(task)

    async def drain(self, seconds: float) -> None:
        """Wait for what is under way; what takes longer is given up."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            asked = await self._read(request)
        except RefusedRequestError as refused:
            self.ledger.append({"event": "refused", "why": str(refused)})
            return _told(refused.api, refused.status, "invalid_request_error", str(refused))
        try:
            answer = await (self._ask(request, asked) if self.replay is None else self._again(request, asked))
        except CapReachedError as reached:
            self.ledger.append({"event": "capped", "why": str(reached)})
            body = asked.api.error("invalid_request_error", f"bench: {reached}")
            answer = Answer(400, _NOTHING_USED, CAP, str(reached), body)
        except DivergedError as diverged:
            self.ledger.append({"event": "diverged", "why": str(diverged)})
            return _told(asked.api, 400, "invalid_request_error", f"bench: {diverged}")
        answer.body = self.redactor.redact(answer.body)
        # Before the agent has all of the answer: what it may build on is kept, whatever happens then.
        if self.recording is not None:
            self.recording.append(self._exchange(asked, answer))
        if answer.begun is not None:
            return answer.begun
        return web.Response(
            status=answer.status or 502,
            body=answer.body,
            headers={"content-type": answer.media, **(_FINAL if (answer.status or 502) >= 400 else {})},
        )

    def _exchange(self, asked: Asked, answer: Answer) -> Exchange:
        """What is recorded: the last sending, which is the one that the agent was answered with."""
        return Exchange(
            number=asked.number,
            path=asked.api.path,
            model=asked.model,
            upstream=asked.route.upstream.name,
            status=answer.status or 502,
            media=answer.media,
            request=asked.raw,
            answer=b"".join(answer.parts) if answer.begun is not None else answer.body,
            whole=answer.sent,
            use=_use_document(answer.use),
            failure=answer.failure,
            told=self._words(answer.told),
            seconds=answer.seconds,
        )

    async def _again(self, request: web.Request, asked: Asked) -> Answer:
        """Answer as it was recorded; what was used then is counted once more."""
        assert self.replay is not None
        recorded = self.replay.answer(asked.api.path, mapping(json_value(asked.raw)))
        if recorded.failure == CAP:
            raise CapReachedError(recorded.told or "")
        number = self._number = self._number + 1
        self._note_sent(number, asked, recorded.upstream)
        self.ledger.append(
            {
                "event": "settled",
                "n": number,
                **{name: getattr(recorded, name) for name in ("status", "failure", "told", "use", "seconds")},
            }
        )
        answer = Answer(recorded.status, body=recorded.answer, media=recorded.media)
        if recorded.media == EVENTS and recorded.status < 300:
            answer.begun = web.StreamResponse(headers=_STREAM)
            if await _listens(answer.begun.prepare(request)):
                await _listens(answer.begun.write(recorded.answer))
            if not recorded.whole and request.transport is not None:
                request.transport.abort()
        return answer

    def _words(self, text: str | None) -> str | None:
        return self.redactor.redact_text(text) if text else None

    async def _read(self, request: web.Request) -> Asked:
        """The request, checked. Raises RefusedRequestError."""
        api = api_at(request.raw_path.partition("?")[0])
        host = (request.headers.get("Host") or "").rpartition(":")[0] or request.headers.get("Host")
        if api is None or api.name not in self.apis or host not in ("127.0.0.1", "localhost"):
            raise RefusedRequestError(
                404, f"this gateway serves {' and '.join(self.apis)} by POST and nothing else"
            )
        if request.method != "POST":
            raise RefusedRequestError(405, f"{request.method} is not served here", api)
        sent = request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix(
            "Bearer "
        )
        if not secrets.compare_digest(sent.encode("utf-8", "replace"), self.token.encode()):
            raise RefusedRequestError(401, "the key is not the one that the tool was given", api)
        try:
            raw = await request.read()
        except (web.HTTPRequestEntityTooLarge, aiohttp.ClientError, ValueError, OSError) as error:
            raise RefusedRequestError(
                413, f"the request cannot be read: {type(error).__name__}", api
            ) from None
        body = json_value(raw)
        if not isinstance(body, dict):
            raise RefusedRequestError(400, "the request is not a JSON object", api)
        try:
            return self._asked(api, body, raw)
        except RecursionError:
            raise RefusedRequestError(400, "the request is nested too deep", api) from None

    def _asked(self, api: Api, body: Object, raw: bytes) -> Asked:
        why = api.refusal(body)
        if why is not None:
            raise RefusedRequestError(400, why, api)
        model = str(body.get("model"))
        route = self.models.get(model)
        if route is None:
            known = ", ".join(self.models)
            raise RefusedRequestError(404, f"model {model[:80]} is not this cell's; it may use {known}", api)
        stream = body.get("stream") is True
        options = mapping(body.get("stream_options"))
        wants_use = options.get("include_usage") is True
        if api.name == "chat-completions" and stream and not wants_use:
            body["stream_options"] = {**options, "include_usage": True}
        bound = api.bound(body)
        bounded = any(account.caps.bound_answers for account in self.accounts)
        if bound is None and api.bounds and bounded:
            bound = body[api.bounds[0]] = DEFAULT_BOUND
        # Written anew, what is sent is what was looked at: of a name that comes twice others may read the first.
        sent = json_bytes(body)
        capped = bounded and not api.free
        given = self.conversations.input_of(api, body, sent) if capped else input_alone(sent)
        most = TokenCounts(given.most, 0, 0, DEFAULT_BOUND if bound is None else bound)
        if api.free:
            most = _NOTHING_USED.tokens
        held = _most(route, most)
        self._asked_before += 1
        return Asked(
            self._asked_before,
            api,
            model,
            route,
            raw,
            sent,
            stream,
            wants_use,
            held,
            most,
            given.conversation,
            bool(body.get("tools")),
        )

    async def _ask(self, request: web.Request, asked: Asked) -> Answer:
        """Send a request, again where a failure may pass, and settle each sending."""
        pause = self.first_wait_s
        for left in range(TRIES - 1, -1, -1):
            answer = await self._pay_and_send(request, asked)
            wait = pause if answer.wait_s is None else answer.wait_s
            again = answer.begun is None and answer.failure in _PASSING and wait <= LONGEST_WAIT_S
            if not again or not left or request.transport is None:
                break
            await asyncio.sleep(wait)
            pause *= 2
        return answer

    async def _pay_and_send(self, request: web.Request, asked: Asked) -> Answer:
        await self.till.hold(self.accounts, asked.held)
        number = self._number = self._number + 1
        started = time.monotonic()
        answer = Answer(failure="timeout", told="the cell ended before the answer did")
        self._note_sent(number, asked, asked.route.upstream.name)
        try:
            async with asked.route.upstream:
                started = time.monotonic()
                answer = await self._send(request, asked)
        finally:
            answer.seconds = round(time.monotonic() - started, 6)
            self.ledger.append(
                {
                    "event": "settled",
                    "n": number,
                    "status": answer.status,
                    "failure": answer.failure,
                    "told": self._words(answer.told),
                    "use": _use_document(answer.use),
                    "seconds": answer.seconds,
                }
            )
            if asked.conversation is not None and answer.use is not None and answer.status == 200:
                self.conversations.took(asked.conversation, answer.use.given)
            self.till.settle(self.accounts, asked.held, _used(asked, answer.use))
        return answer

    def _note_sent(self, number: int, asked: Asked, upstream: str) -> None:
        self.ledger.append(
            {
                "event": "sent",
                "n": number,
                "api": asked.api.name,
                "model": asked.model,
                "upstream": upstream,
                "offers_tools": asked.offers_tools,
                "held": {"input": asked.most.input, "output": asked.most.output},
            }
        )

    async def _send(self, request: web.Request, asked: Asked) -> Answer:
        upstream = asked.route.upstream
        answer = Answer()
        try:
            async with upstream.send(self.client, asked.api, asked.body, request.headers) as response:
                answer.status = response.status
                answer.media = response.content_type
                if response.status >= 300:
                    await self._take_error(asked, response, answer)
                elif response.content_type == EVENTS:
                    await self._pass_on(request, asked, response, answer)
                else:
                    await self._take_whole(asked, response, answer)
        except TimeoutError:
            _fail(answer, "timeout", f"{upstream.name} was silent for too long")
        except aiohttp.ClientConnectorError:
            answer.use = _NOTHING_USED
            _fail(answer, "overload", f"{upstream.name} could not be reached")
        except (aiohttp.ClientError, OSError) as error:
            _fail(answer, "overload", f"{upstream.name} ended the connection: {type(error).__name__}")
        if answer.failure and answer.begun is None and not answer.body:
            answer.status = 504 if answer.failure == "timeout" else 502
            answer.media = "application/json"
            answer.body = asked.api.error("api_error", f"bench: {answer.told}")
        if answer.failure and answer.begun is not None and request.transport is not None and not answer.sent:
            # The agent has a part of an answer that has no end: only a broken connection says so.
            request.transport.abort()
        return answer

    async def _take_error(self, asked: Asked, response: aiohttp.ClientResponse, answer: Answer) -> None:
        answer.body = await response.content.read(_MAX_ERROR)
        answer.use = _NOTHING_USED
        status = response.status
        if status < 400:
            answer.status = 502
            answer.body = b""
            _fail(
                answer,
                "refused",
                f"{asked.route.upstream.name} answered with a redirect, which is not followed",
            )
            return
        answer.wait_s = asked.route.upstream.rest(response.headers)
        failure = failure_of(status, answer.body)
        if failure is not None:
            text = " ".join(answer.body.decode("utf-8", "replace").split())[:300]
            _fail(answer, failure, f"status {status} of {asked.route.upstream.name}: {text}")

    async def _take_whole(self, asked: Asked, response: aiohttp.ClientResponse, answer: Answer) -> None:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY:
                raise aiohttp.ClientPayloadError("too long")
        answer.body = bytes(body)
        value = mapping(json_value(answer.body))
        answer.use = asked.api.use_in(value)
        failed = failure_in(value)
        if failed is not None:
            _fail(answer, *failed)

    async def _pass_on(
        self, request: web.Request, asked: Asked, response: aiohttp.ClientResponse, answer: Answer
    ) -> None:
        """Send an answer's events on as they come, and read on when nobody listens any more."""
        seen = StreamUse(asked.api)
        to_agent = web.StreamResponse(headers=_STREAM)
        answer.sent = False
        listening = await _listens(to_agent.prepare(request))
        answer.begun = to_agent
        buffer = bytearray()
        try:
            async for chunk in response.content.iter_any():
                buffer += chunk
                if len(buffer) > MAX_BODY:
                    raise aiohttp.ClientPayloadError("an event is too long")
                passed = []
                for event in events_in(buffer):
                    only_use = seen.take(event)
                    if not only_use or asked.wants_use:
                        passed.append(event)
                if passed:
                    part = self._part(answer, b"".join(passed))
                    listening = listening and await _listens(to_agent.write(part))
            if buffer:
                part = self._part(answer, bytes(buffer))
                listening = listening and await _listens(to_agent.write(part))
            answer.sent = True
        finally:
            answer.use = seen.use
        if seen.failure is not None:
            _fail(answer, *seen.failure)
        elif not seen.whole:
            answer.sent = False
            _fail(answer, "overload", f"{asked.route.upstream.name} ended an answer before its end")

    def _part(self, answer: Answer, data: bytes) -> bytes:
        """A part of a streamed answer as the agent may have it."""
        clean = self.redactor.redact(data)
        if self.recording is not None:
            answer.parts.append(clean)
        return clean


async def _listens(sending: Any) -> bool:
    """Whether the agent still takes what is sent to it."""
    try:
        await sending
    except (OSError, aiohttp.ClientError):
        return False
    return True


def _fail(answer: Answer, failure: str, told: str) -> None:
    answer.failure, answer.told = failure, told


def _use_document(use: Use | None) -> dict[str, int | None] | None:
    return None if use is None else {**vars(use.tokens), "reasoning": use.reasoning}


def _most(route: ModelRoute, tokens: TokenCounts) -> Amount:
    """What a request with so many tokens can count with."""
    assert tokens.input is not None
    assert tokens.output is not None
    cost = route.price.most(tokens.input, tokens.output) if route.price is not None else Decimal(0)
    return Amount(1, tokens.input + tokens.output, cost)


def _used(asked: Asked, use: Use | None) -> Amount:
    """What a sending counts with on the accounts: as much as was held for it, where nobody knows."""
    if use is None:
        return asked.held
    tokens = sum(vars(use.tokens).values())
    cost = asked.route.price.exact(use.tokens) if asked.route.price is not None else None
    return Amount(1, tokens, asked.held.cost_usd if cost is None else cost)


def _told(api: Api | None, status: int, kind: str, text: str) -> web.Response:
    body = (
        api.error(kind, text) if api is not None else json_bytes({"error": {"type": kind, "message": text}})
    )
    return web.Response(status=status, body=body, headers={"content-type": "application/json", **_FINAL})
