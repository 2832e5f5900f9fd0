"""Requests that have ended, measured in the histograms of the conventions for generative AI.

Needs the extra `otel`, as `otlp` does. Every request counts, whether its trace is sampled or not.
"""

from opentelemetry.metrics import Histogram, Meter

from cluster_gw.telemetry import gen_ai
from cluster_gw.telemetry.gen_ai import Measure
from cluster_gw.telemetry.otlp_spans import Value, peer_of
from cluster_gw.telemetry.spans import CallSpan, RequestSpan
from cluster_gw.units import NS_PER_S


class Measures:
    """The histograms.

    Args:
        meter: makes them.
        latest_only: names that the conventions gave up are left out.
    """

    def __init__(self, meter: Meter, *, latest_only: bool) -> None:
        def made(measure: Measure) -> Histogram:
            return meter.create_histogram(
                measure.name,
                unit=measure.unit,
                description=measure.help,
                explicit_bucket_boundaries_advisory=measure.buckets,
            )

        self._latest_only = latest_only
        self._call, self._tokens = made(gen_ai.CLIENT_DURATION), made(gen_ai.CLIENT_TOKENS)
        self._first_chunk = made(gen_ai.CLIENT_FIRST_CHUNK)
        self._request = made(gen_ai.SERVER_DURATION)
        self._first_token = made(gen_ai.SERVER_FIRST_TOKEN)
        self._token_time = made(gen_ai.SERVER_TOKEN_TIME)

    def note(self, request: RequestSpan) -> None:
        """Count one request and its calls."""
        for call in request.calls:
            self._note_call(call)
        if request.is_inner:
            return
        operation, _ = gen_ai.surface_of(request.surface, is_stream=request.is_stream)
        told: dict[str, Value] = {
            gen_ai.OPERATION: operation,
            gen_ai.PROVIDER: gen_ai.GATEWAY,
            gen_ai.REQUEST_MODEL: request.combo,
        }
        if not self._latest_only:
            told[gen_ai.SYSTEM] = gen_ai.GATEWAY
        if request.model is not None:
            told[gen_ai.RESPONSE_MODEL] = request.model
        duration_s = (request.end_ns - request.start_ns) / NS_PER_S
        if request.code is not None:
            self._request.record(duration_s, {**told, gen_ai.ERROR_TYPE: request.code})
            return
        self._request.record(duration_s, told)
        if not request.is_stream or request.first_byte_s is None:
            return
        self._first_token.record(request.first_byte_s, told)
        usage = request.calls[-1].usage if request.calls else None
        if usage is not None and usage.completion_tokens > 1:
            rest_s = max(0.0, duration_s - request.first_byte_s)
            self._token_time.record(rest_s / (usage.completion_tokens - 1), told)

    def _note_call(self, call: CallSpan) -> None:
        told = peer_of(call, latest_only=self._latest_only)
        duration_s = (call.end_ns - call.start_ns) / NS_PER_S
        if call.code is not None:
            self._call.record(duration_s, {**told, gen_ai.ERROR_TYPE: call.code})
        else:
            self._call.record(duration_s, told)
        if call.first_chunk_s is not None:
            self._first_chunk.record(call.first_chunk_s, told)
        if call.usage is not None:
            for kind, tokens in (
                (gen_ai.INPUT, call.usage.prompt_tokens),
                (gen_ai.OUTPUT, call.usage.completion_tokens),
            ):
                self._tokens.record(tokens, {**told, gen_ai.TOKEN_TYPE: kind})
