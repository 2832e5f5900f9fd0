import io
import os
import re
import subprocess
import sys

import msgspec
import pytest

from cluster_gw.telemetry.events import EVENTS, REQUEST_FINISHED, WORKER_STARTED
from cluster_gw.telemetry.lines import RequestLine
from cluster_gw.telemetry.log import MAX_BUFFER_LINES, Log
from cluster_gw.telemetry.text_line import text_line


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


@pytest.mark.parametrize("state", ["closed", "no reader"])
def test_a_log_that_cannot_be_written_never_raises(state: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = open(writing, "wb", buffering=0)  # noqa: SIM115
    if state == "closed":
        stream.close()
    log = Log(stream)

    log.event(WORKER_STARTED, worker="w1", config_version=1)
    for _ in range(MAX_BUFFER_LINES + 1):
        log.hot(request_line())
    log.flush()

    assert log.lost_lines == 1 + MAX_BUFFER_LINES + 1
    stream.close()


def test_a_full_pipe_loses_lines_and_blocks_nobody() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(writing, "wb", buffering=0) as stream:
        log = Log(stream)
        for _ in range(2000):
            log.event(WORKER_STARTED, worker="w" * 100, config_version=1)

    assert 0 < log.lost_lines < 2000
    os.close(reading)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_process_without_standard_error_logs_and_ends_well(redirection: str) -> None:
    code = (
        "from cluster_gw.telemetry.log import Log;"
        "from cluster_gw.telemetry.events import WORKER_STARTED;"
        "Log(console=True).event(WORKER_STARTED, worker='w', config_version=1); print('went on')"
    )

    result = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, code],
        capture_output=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, b"went on\n")


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_color", ["", "1"])
def test_text_lines_are_coloured_on_a_terminal_unless_told_not_to(
    monkeypatch: pytest.MonkeyPatch, no_color: str
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = Terminal()
    log = Log(stream, console=True)

    log.event(WORKER_STARTED, worker="w1", config_version=1)
    log.hot(request_line())
    log.flush()

    for line in stream.getvalue().splitlines():
        assert (b"\x1b[" in line) is (no_color == "")


def read_lines(terminal: io.FileIO, count: int) -> bytes:
    """What comes at a terminal, which may come in pieces, until there are so many lines."""
    written = b""
    while written.count(b"\n") < count:
        written += terminal.read(4096)
    return written


@pytest.mark.parametrize("console", [None, False, True])
def test_log_is_text_on_a_terminal_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, console: bool | None
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    ours, theirs = os.openpty()
    with open(ours, "rb", buffering=0) as terminal, open(theirs, "wb", buffering=0) as stream:
        log = Log(stream, console=console)
        log.event(WORKER_STARTED, worker="w1", config_version=1)
        log.hot(request_line())
        log.close()
        written = read_lines(terminal, 2)

    event, hot = written.decode().splitlines()
    assert event.startswith("{") is hot.startswith("{") is (console is False)
    assert ("\x1b[1mworker.started" in event) is (console is not False)
    assert ("\x1b[1mrequest.finished" in hot) is (console is not False)


def test_log_is_json_where_no_terminal_is() -> None:
    stream = io.BytesIO()

    Log(stream, console=None).event(WORKER_STARTED, worker="w1", config_version=1)

    assert lines(stream)[0]["event"] == "worker.started"


def test_process_with_a_terminal_logs_text_by_itself() -> None:
    ours, theirs = os.openpty()
    code = (
        "from cluster_gw.telemetry.log import Log;"
        "from cluster_gw.telemetry.events import WORKER_STARTED as E;"
        "log = Log(console=None); log.event(E, worker='w', config_version=1); log.close()"
    )

    with open(ours, "rb", buffering=0) as terminal:
        subprocess.run([sys.executable, "-c", code], stderr=theirs, check=True)
        written = read_lines(terminal, 1)
        os.close(theirs)

    assert b"worker.started" in written
    assert not written.startswith(b"{")


def test_hot_lines_of_a_text_log_are_text_like_the_others() -> None:
    stream = io.BytesIO()
    log = Log(stream, console=True)

    log.event(WORKER_STARTED, worker="w1", config_version=1)
    log.hot(request_line())
    log.flush()

    event, hot = stream.getvalue().decode().splitlines()
    assert re.fullmatch(r"\S+Z \[info   \] worker\.started     worker=w1 config_version=1", event)
    assert re.fullmatch(r"\S+Z \[info   \] request\.finished   request_id=r client=c .*", hot)
    assert " status=200 stream=false " in hot


def test_a_value_cannot_forge_a_line_or_move_the_cursor() -> None:
    forged = "a\nb \x1b[2J\u2028 \x85"

    line = text_line({"event": "e", "x": forged, "y": [forged], "z": "plain"}, colors=False)

    assert line.isprintable()
    assert msgspec.json.decode(line.split("x=")[1].split(" y=")[0]) == forged
    assert line.endswith("z=plain")


@pytest.mark.parametrize("console", [False, True])
def test_a_text_that_is_no_unicode_never_raises(console: bool) -> None:
    log = Log(io.BytesIO(), console=console)
    line = request_line()
    line.client = "\udc80"

    log.event(WORKER_STARTED, worker="\udc80", config_version=1)
    log.hot(line)

    assert log.lost_lines == 2
