"""The imitated provider: every route, from authentication to the last byte.

Order of judgement, as at the real one: key, body, model, limits; then the faults of the test.
"""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from cluster_gw.simulator.answer import compose_answer
from cluster_gw.simulator.api_error import (
    ApiError,
    invalid,
    model_not_found,
    rate_limited,
    unauthorized,
)
from cluster_gw.simulator.chat_request import decode_chat_request
from cluster_gw.simulator.chat_response import Envelope
from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.connection import Channel, HttpRequest
from cluster_gw.simulator.delivery import Delivery, Pace, preempt
from cluster_gw.simulator.directive import (
    Directive,
    DirectiveFault,
    FaultRule,
    parse_directive,
)
from cluster_gw.simulator.embeddings import decode_embedding_request, embedding_body
from cluster_gw.simulator.fault_book import FaultBook
from cluster_gw.simulator.faults import Fault, fault_from_model
from cluster_gw.simulator.ledger import Account, Charge, Ledger, Rejection
from cluster_gw.simulator.rate_headers import rate_headers
from cluster_gw.simulator.reply import Headers, Reply, error_reply, json_reply
from cluster_gw.simulator.reshape import chat_reply, replacement_reply
from cluster_gw.units import MS_PER_S

TICKS_OF_GRACE: Final = 2  # event loop turns in which a client that just left is noticed
STORY_PATH: Final = "/stats/requests/"
MODEL_PATH: Final = "/v1/models/"

Clock = Callable[[], float]
Route = Callable[["Provider", HttpRequest, Channel], Awaitable[None]]


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """A request that passed its limits, with the faults it gets."""

    account: Account
    charge: Charge
    directive: Directive
    faults: tuple[Fault, ...]
    model: str
    arrived_s: float
    prompt_tokens: int


class Provider:
    """Answers requests; one instance holds all state of one simulated provider."""

    def __init__(self, config: SimulatorConfig, clock: Clock, unix_clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._unix_clock = unix_clock
        self._random = random.Random(config.seed)  # noqa: S311  # jitter, not a secret
        self._sequence = 0
        self.ledger = Ledger(config)
        self.faults = FaultBook(config.name, config.remembered_ids)

    async def serve(self, request: HttpRequest, channel: Channel) -> None:
        """Answer one request."""
        route = ROUTES.get((request.method, request.path))
        if route is not None:
            await route(self, request, channel)
        elif request.method == "GET" and request.path.startswith(STORY_PATH):
            story = self.ledger.story(request.path.removeprefix(STORY_PATH))
            status = 404 if story is None else 200
            await self._send(channel, json_reply(msgspec.json.encode(story), status=status))
        elif request.method == "GET" and request.path.startswith(MODEL_PATH):
            await self._serve_model(request, channel)
        else:
            message = f"Invalid URL ({request.method} {request.path})"
            await self._send_error(channel, ApiError(status=404, message=message))

    def stats(self) -> dict[str, Any]:
        """Everything counted so far."""
        books = self.ledger.stats(self._clock())
        return {"name": self._config.name, **books, "faults": self.faults.stats()}

    async def serve_chat(self, request: HttpRequest, channel: Channel) -> None:
        """`POST /v1/chat/completions`."""
        account = await self._authenticate(request, channel)
        if account is None:
            return
        chat = decode_chat_request(request.body)
        if isinstance(chat, ApiError):
            await self._refuse(channel, chat)
            return
        admission = await self._admit(
            channel,
            account,
            chat.model,
            chat.last_user_text,
            (chat.prompt_tokens, chat.image_count),
        )
        if admission is None:
            return
        directive, faults = admission.directive, admission.faults
        stand_in = replacement_reply(faults)
        if stand_in is not None:
            await self._deliver(channel, admission, stand_in, None)
            return
        answer = compose_answer(
            chat, directive, seed=self._config.seed, output_tokens=self._config.output_tokens
        )
        envelope = Envelope(
            id="chatcmpl-" + self._identity(),
            created_s=int(self._unix_clock()),
            model=chat.model,
            system_fingerprint=f"fp_{self._config.seed:010x}",
        )
        reply, answer = chat_reply(envelope, chat, answer, faults)
        billed = None if answer.scripted_usage is None else answer.billed_tokens
        await self._deliver(channel, admission, reply, billed)

    async def serve_embeddings(self, request: HttpRequest, channel: Channel) -> None:
        """`POST /v1/embeddings`."""
        account = await self._authenticate(request, channel)
        if account is None:
            return
        wanted = decode_embedding_request(request.body)
        if isinstance(wanted, ApiError):
            await self._refuse(channel, wanted)
            return
        admission = await self._admit(
            channel, account, wanted.model, wanted.texts[0], (wanted.prompt_tokens, 0)
        )
        if admission is None:
            return
        body = embedding_body(wanted, self._config.embedding_dimensions)
        stand_in = replacement_reply(admission.faults)
        await self._deliver(channel, admission, stand_in or json_reply(body), None)

    async def serve_models(self, request: HttpRequest, channel: Channel) -> None:
        """`GET /v1/models`."""
        account = await self._authenticate(request, channel)
        if account is None:
            return
        self.ledger.count("listings")
        stand_in = replacement_reply(self.faults.take_for_listing(key=account.label))
        if stand_in is not None:
            await self._send(channel, stand_in)
            return
        models = [_model_card(name) for name in self._config.models]
        body = msgspec.json.encode({"object": "list", "data": models})
        await self._send(channel, json_reply(body))

    async def serve_stats(self, request: HttpRequest, channel: Channel) -> None:  # noqa: ARG002
        """`GET /stats`."""
        await self._send(channel, json_reply(msgspec.json.encode(self.stats())))

    async def reset_stats(self, request: HttpRequest, channel: Channel) -> None:  # noqa: ARG002
        """`DELETE /stats`: forget counts, windows and ids."""
        self.ledger.reset()
        self.faults.reset_counts()
        await self._send(channel, json_reply(b"{}"))

    async def add_faults(self, request: HttpRequest, channel: Channel) -> None:
        """`POST /sim/faults`: append a list of rules to the script."""
        try:
            rules = msgspec.json.decode(request.body, type=list[FaultRule])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            await self._send_error(channel, invalid(str(error), code="sim_faults_invalid"))
            return
        self.faults.add(rules)
        await self._send(channel, json_reply(msgspec.json.encode(self.faults.stats())))

    async def list_faults(self, request: HttpRequest, channel: Channel) -> None:  # noqa: ARG002
        """`GET /sim/faults`: the rules that are left."""
        await self._send(channel, json_reply(msgspec.json.encode(self.faults.pending())))

    async def clear_faults(self, request: HttpRequest, channel: Channel) -> None:  # noqa: ARG002
        """`DELETE /sim/faults`."""
        self.faults.clear()
        await self._send(channel, json_reply(b"{}"))

    async def serve_livez(self, request: HttpRequest, channel: Channel) -> None:  # noqa: ARG002
        """`GET /livez`."""
        await self._send(channel, json_reply(b'{"status":"ok"}'))

    async def _serve_model(self, request: HttpRequest, channel: Channel) -> None:
        if await self._authenticate(request, channel) is None:
            return
        name = request.path.removeprefix(MODEL_PATH)
        if self._offers(name):
            await self._send(channel, json_reply(msgspec.json.encode(_model_card(name))))
        else:
            await self._send_error(channel, model_not_found(name))

    async def _authenticate(self, request: HttpRequest, channel: Channel) -> Account | None:
        self.ledger.count("requests")
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        secret = secret.strip() if scheme.lower() == "bearer" else ""
        account = self.ledger.account(secret or request.headers.get("api-key", ""))
        if account is None:
            self.ledger.count("unauthorized")
            await self._send_error(channel, unauthorized())
        return account

    async def _admit(
        self, channel: Channel, account: Account, model: str, text: str, size: tuple[int, int]
    ) -> Admission | None:
        """Judge a well-formed request of `size` (prompt tokens, images); answer it if refused."""
        if not self._offers(model):
            await self._refuse(channel, model_not_found(model))
            return None
        directive = parse_directive(text)
        if isinstance(directive, DirectiveFault):
            await self._refuse(channel, invalid(directive.message, code="sim_directive_invalid"))
            return None
        for _ in range(TICKS_OF_GRACE if account.is_full(model) else 0):
            await asyncio.sleep(0)
        now_s = self._clock()
        verdict = self.ledger.arrive(
            account, model=model, now_s=now_s, request_id=directive.id, images=size[1]
        )
        if isinstance(verdict, Rejection):
            headers = self._headers(account, model, now_s)
            await self._send(channel, error_reply(rate_limited(model, verdict.hits), headers))
            return None
        channel.on_lost = lambda: verdict.close("aborted", "aborted")
        return Admission(
            account=account,
            charge=verdict,
            directive=directive,
            faults=self.faults.take(
                directive, request_key=directive.id or text, key=account.label, model=model
            ),
            model=model,
            arrived_s=now_s,
            prompt_tokens=size[0],
        )

    async def _deliver(
        self, channel: Channel, admission: Admission, reply: Reply, billed: tuple[int, int] | None
    ) -> None:
        """Send a reply at its pace and close the books of the request."""
        charge, faults = admission.charge, admission.faults
        if await preempt(channel, charge, faults):
            return
        if reply.is_answer:
            charge.bill(admission.prompt_tokens, 0)
        pace = self._pace(admission.directive)
        tokens = sum(frame.tokens for frame in reply.frames)
        wait_s = pace.head_wait_s(is_stream=reply.is_stream, tokens=tokens)
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        headers = self._headers(admission.account, admission.model, admission.arrived_s)
        delivery = Delivery(channel, charge, faults, pace)
        if not await delivery.send(reply, (*headers, *reply.headers)):
            return
        if billed is not None and reply.is_answer:
            charge.bill(*billed)
        if reply.is_answer:
            charge.close("completed", "completed")
        else:
            charge.close("failed", f"status_{reply.status}")
        await channel.drain()

    def _pace(self, directive: Directive) -> Pace:
        """The tempo of one answer: the provider's, with what the request asks for."""
        config = self._config
        latency_ms = directive.latency_ms
        if latency_ms is None:
            latency_ms = config.latency_ms + self._random.uniform(0, config.jitter_ms)
        ttft_ms = config.ttft_ms if directive.ttft_ms is None else directive.ttft_ms
        speed = directive.tokens_per_s or config.tokens_per_s
        return Pace(
            latency_s=latency_ms / MS_PER_S,
            ttft_s=ttft_ms / MS_PER_S,
            token_s=0.0 if speed is None else 1 / speed,
        )

    def _headers(self, account: Account, model: str, arrived_s: float) -> Headers:
        now_s = self._clock()
        elapsed_ms = max(round((now_s - arrived_s) * MS_PER_S), 0)
        return (
            ("x-request-id", "req_" + self._identity()),
            ("openai-processing-ms", str(elapsed_ms)),
            *rate_headers(*account.rate_headers(model, now_s)),
        )

    def _identity(self) -> str:
        """A new id, the same in every run."""
        self._sequence += 1
        source = f"{self._config.name}|{self._config.seed}|{self._sequence}"
        return hashlib.blake2b(source.encode(), digest_size=12).hexdigest()

    def _offers(self, model: str) -> bool:
        config = self._config
        return config.any_model or model in config.models or fault_from_model(model) is not None

    async def _refuse(self, channel: Channel, error: ApiError) -> None:
        self.ledger.count("invalid")
        await self._send_error(channel, error)

    async def _send_error(self, channel: Channel, error: ApiError) -> None:
        await self._send(
            channel, error_reply(error, (("x-request-id", "req_" + self._identity()),))
        )

    async def _send(self, channel: Channel, reply: Reply) -> None:
        """Send a small answer at once."""
        body = b"".join(frame.data for frame in reply.frames)
        channel.write_head(reply.status, reply.content_type, reply.headers, len(body))
        channel.write_body(body)
        channel.flush()
        await channel.drain()


def _model_card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "simulator"}


ROUTES: Final[dict[tuple[str, str], Route]] = {
    ("POST", "/v1/chat/completions"): Provider.serve_chat,
    ("POST", "/v1/embeddings"): Provider.serve_embeddings,
    ("GET", "/v1/models"): Provider.serve_models,
    ("GET", "/stats"): Provider.serve_stats,
    ("DELETE", "/stats"): Provider.reset_stats,
    ("POST", "/sim/faults"): Provider.add_faults,
    ("GET", "/sim/faults"): Provider.list_faults,
    ("DELETE", "/sim/faults"): Provider.clear_faults,
    ("GET", "/livez"): Provider.serve_livez,
}
