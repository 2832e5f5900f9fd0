"""What libraries log comes as events, without its text and within the limit of lines."""

import asyncio
import io
import logging
import threading

import msgspec

from cluster_gw.telemetry.events import LIBRARY_WARNED
from cluster_gw.telemetry.library_log import libraries_told
from cluster_gw.telemetry.log import Log

SECRET = "sk-proj-0123456789abcdefghij"


def lines(stream: io.BytesIO) -> list[dict[str, str]]:
    return [msgspec.json.decode(line) for line in stream.getvalue().splitlines()]


def test_a_record_tells_its_library_and_place_and_not_its_text() -> None:
    stream = io.BytesIO()
    with libraries_told(Log(stream)):
        logging.getLogger("aiohttp.client").warning("unclosed connection to %s", SECRET)
        logging.getLogger("aiohttp.client").info("nothing worth it")
    logging.getLogger("aiohttp.client").warning("nobody listens any more")

    (line,) = lines(stream)
    assert line["event"] == LIBRARY_WARNED.name
    assert line["library"] == "aiohttp.client"
    assert line["where"].startswith("test_library_log.py:")
    assert SECRET not in str(line)


def test_another_thread_leaves_the_writing_to_the_one_that_logs() -> None:
    stream = io.BytesIO()
    log = Log(stream)
    with libraries_told(log):
        thread = threading.Thread(target=lambda: logging.getLogger("exporter").error("failed"))
        thread.start()
        thread.join()
    before = stream.getvalue()

    log.tidy()

    assert before == b""
    assert [line["library"] for line in lines(stream)] == ["exporter"]


def fail() -> None:
    raise KeyError(SECRET)


async def test_an_exception_of_a_task_that_nobody_waits_for_is_an_event_without_its_text() -> None:
    stream, loop = io.BytesIO(), asyncio.get_running_loop()
    with libraries_told(Log(stream)):
        loop.call_soon(fail)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    (line,) = lines(stream)
    assert (line["library"], line["exception"]) == ("asyncio", "KeyError")
    assert line["where"].startswith("test_library_log.py:")
    assert SECRET not in str(line)


def test_records_of_one_place_are_limited() -> None:
    stream = io.BytesIO()
    log = Log(stream)
    log.limit.fit(0.01, 3)
    with libraries_told(log):
        for number in range(10):
            logging.getLogger("library").warning("Invalid HTTP request %d", number)
    log.close()

    # What tests before this one left behind may be told of just now, by asyncio.
    told = [line["event"] for line in lines(stream) if line.get("library", "library") == "library"]
    assert told == [LIBRARY_WARNED.name] * 3 + ["log.thinned"]
