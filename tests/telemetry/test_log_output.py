"""A log that nobody reads, or not fast enough: the process goes on, and says what is missing."""

import io
import os
import subprocess
import sys

import msgspec
import pytest

from cluster_gw.telemetry.events import LOG_INTERRUPTED, REQUEST_FINISHED
from cluster_gw.telemetry.lines import HotLine
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.log_output import MAX_BUFFER_BYTES, BufferedOutput

PIPE_BYTES = 65_536


class NumberedLine(HotLine, kw_only=True):
    number: int
    padding: str


def numbered(number: int) -> NumberedLine:
    return NumberedLine(event=REQUEST_FINISHED.name, number=number, padding=" " * 1000)


def test_lines_nobody_reads_are_buffered_then_lost_and_their_number_stands_in_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        log = Log()
        data, lost, last = overrun(log, reading)
    os.close(reading)

    lines = [msgspec.json.decode(line) for line in data.splitlines()]
    kept = last - lost
    assert MAX_BUFFER_BYTES // 1200 < kept < last
    assert [line["number"] for line in lines[:kept]] == list(range(kept))
    assert lines[kept]["event"] == LOG_INTERRUPTED.name
    assert lines[kept]["count"] == lost
    assert [line["number"] for line in lines[kept + 1 :]] == [last]


def overrun(log: Log, reading: int) -> tuple[bytes, int, int]:
    """Log twice as much as fits, then read it all: the text, how many were lost, the last."""
    data, last = b"", 2 * MAX_BUFFER_BYTES // 1000
    for number in range(last):
        log.hot(numbered(number))
    log.flush()
    lost = log.lost_lines

    while LOG_INTERRUPTED.name.encode() not in data:
        log.flush()
        data += os.read(reading, PIPE_BYTES)
    log.hot(numbered(last))
    log.close()
    return data + os.read(reading, PIPE_BYTES), lost, last


def test_a_slow_reader_costs_one_gap_and_not_many() -> None:
    reading, writing = os.pipe()
    line, received = b"x" * 999 + b"\n", 0
    with open(writing, "wb", buffering=0) as stream:
        output, written = BufferedOutput(stream, max_bytes=4 * PIPE_BYTES), 0
        while not output.lost_lines:
            output.write(line)
            written += 1

        received += len(os.read(reading, PIPE_BYTES))
        output.write(line)

        assert (output.lost_lines, output.gap_lines, output.take_gap()) == (2, 2, 0)
        while not (told := output.take_gap()):
            received += len(os.read(reading, PIPE_BYTES))
        output.write(line)
        assert (told, output.gap_lines, output.lost_lines) == (2, 0, 2)
        while received < written * len(line):  # the one that was lost is replaced by the last
            received += len(os.read(reading, PIPE_BYTES))
        output.close()

    assert os.read(reading, 1) == b""
    os.close(reading)


def test_a_process_ends_a_second_after_its_last_line_though_nobody_reads() -> None:
    code = (
        "from cluster_gw.telemetry.log import Log;"
        "from cluster_gw.telemetry.events import WORKER_STARTED as E;"
        "log = Log(); [log.event(E, worker='w' * 1000, config_version=1) for _ in range(500)];"
        "print('went on', flush=True); log.close()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"went on\n"
        assert process.wait(5) == 0


def test_what_waits_at_the_end_is_written() -> None:
    stream = io.BytesIO()
    output = BufferedOutput(stream)

    output.write(b"a\n")
    output.write(b"b\nc\n")
    output.close()

    assert stream.getvalue() == b"a\nb\nc\n"
    assert output.lost_lines == 0


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(writing, "wb", buffering=0) as stream:
        output = BufferedOutput(stream)
        output.write(b"x" * 4 * PIPE_BYTES + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            data += os.read(reading, PIPE_BYTES)
        output.close()

    assert len(data) == 4 * PIPE_BYTES + 1
    assert output.lost_lines == 0
    os.close(reading)


def test_lines_for_a_reader_who_left_are_counted() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb", buffering=0) as stream:
        output = BufferedOutput(stream)
        output.write(b"a\nb\n")
        output.write(b"c\n")
        output.close()

    assert output.lost_lines == 3
    assert output.gap_lines == 0
