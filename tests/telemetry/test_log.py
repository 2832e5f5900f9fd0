import io
import re

import msgspec

from cluster_gw.telemetry.events import EVENTS, REQUEST_FINISHED, WORKER_STARTED, RequestLine
from cluster_gw.telemetry.log import MAX_BUFFER_LINES, Log


def request_line() -> RequestLine:
    return RequestLine(
        event=REQUEST_FINISHED.name,
        request_id="r",
        client="c",
        combo="auto",
        strategy="priority",
        status=200,
        stream=False,
        attempts=1,
        duration_ms=1.5,
        redis_ms=0.5,
        upstream_ms=0.5,
        tokens=3,
        tokens_source="reported",
    )


def lines(stream: io.BytesIO) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in stream.getvalue().splitlines()]


def test_hot_lines_wait_for_a_flush_and_leave_out_what_is_unknown() -> None:
    stream = io.BytesIO()
    log = Log(stream)

    log.hot(request_line())
    before = stream.getvalue()
    log.flush()

    assert before == b""
    assert lines(stream)[0]["status"] == 200
    assert "code" not in lines(stream)[0]


def test_a_full_buffer_is_written_by_itself() -> None:
    stream = io.BytesIO()
    log = Log(stream)

    for _ in range(MAX_BUFFER_LINES):
        log.hot(request_line())

    assert len(lines(stream)) == MAX_BUFFER_LINES


def test_a_state_change_is_written_after_the_lines_before_it() -> None:
    stream = io.BytesIO()
    log = Log(stream)

    log.hot(request_line())
    log.event(WORKER_STARTED, worker="w1", config_version=1)

    assert [line["event"] for line in lines(stream)] == ["request.finished", "worker.started"]
    assert {"level", "timestamp"} <= lines(stream)[1].keys() & lines(stream)[0].keys()


def test_a_console_log_is_for_people() -> None:
    stream = io.BytesIO()

    Log(stream, console=True).event(WORKER_STARTED, worker="w1", config_version=1)

    assert b"worker.started" in stream.getvalue()


def test_event_names_are_unique_and_of_the_form_noun_participle() -> None:
    assert len({event.name for event in EVENTS}) == len(EVENTS)
    assert all(re.fullmatch(r"[a-z_]+\.[a-z_]+", event.name) for event in EVENTS)
