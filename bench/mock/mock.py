"""The mock upstream where no C compiler is: the same arguments, several times slower.

Good enough to see a harness run; figures taken with it say more about it than about a target.
`python -m bench.mock.mock PORT:LATENCY_MS:GAP_US[:MODE[:CHUNKS]] ...`, see `mock.c`.
"""

import asyncio
import re
import sys
from typing import NamedTuple

import uvloop

JSON_BYTES = 938
USAGE = b'"usage":{"prompt_tokens":200,"completion_tokens":50,"total_tokens":250}}'
START = b'{"id":"chatcmpl-bench","object":"chat.completion","created":1,"model":"bench","choices":['
EVENT = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench",'
    b'"choices":[{"index":0,"delta":{"content":"fox "},"finish_reason":null}]}\n\n'
)
TAIL = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench",'
    b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],' + USAGE + b"\n\n"
    b"data: [DONE]\n\n"
)
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
STREAM = re.compile(rb'"stream"\s*:\s*true')
LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)


class Port(NamedTuple):
    number: int
    latency_s: float
    gap_s: float
    mode: str
    chunks: int


class Counts:
    def __init__(self) -> None:
        self.requests = 0
        self.streams = 0
        self.aborted = 0
        self.unanswered = 0

    def page(self) -> bytes:
        fields = ",".join(f'"{name}":{value}' for name, value in vars(self).items())
        return page(200, b"{" + fields.encode() + b"}")


def page(status: int, body: bytes, extra: bytes = b"") -> bytes:
    return (
        b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\n%scontent-length: %d\r\n\r\n"
        % (status, extra, len(body))
        + body
    )


def answer_json() -> bytes:
    start = START + b'{"index":0,"message":{"role":"assistant","content":"'
    end = b'"},"finish_reason":"stop"}],' + USAGE
    return page(200, start + b"x" * (JSON_BYTES - len(start) - len(end)) + end)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def stream(writer: asyncio.StreamWriter, port: Port) -> None:
    writer.write(SSE_HEAD)
    count = port.chunks // 2 if port.mode == "cut" else port.chunks
    for _ in range(count):
        writer.write(chunk(EVENT))
        if port.gap_s:
            await asyncio.sleep(port.gap_s)
            if writer.is_closing():
                raise ConnectionResetError
    if port.mode == "cut":
        writer.close()
    else:
        writer.write(chunk(TAIL) + b"0\r\n\r\n")


async def serve_one(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: Port, counts: Counts
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    found = LENGTH.search(head)
    body = await reader.readexactly(int(found[1])) if found else b""
    if head.startswith(b"GET /stats"):
        writer.write(counts.page())
        return
    counts.requests += 1
    if port.mode == "silent":
        await reader.read()
        counts.unanswered += 1
        raise ConnectionResetError
    await asyncio.sleep(port.latency_s)
    if port.mode == "429":
        writer.write(
            page(429, b'{"error":{"message":"rate limit reached"}}', b"retry-after: 2\r\n")
        )
    elif port.mode == "500":
        writer.write(page(500, b'{"error":{"message":"the server failed"}}'))
    elif STREAM.search(body):
        counts.streams += 1
        try:
            await stream(writer, port)
        except ConnectionError:
            counts.aborted += 1
            raise
    else:
        writer.write(answer_json())


def parse_port(spec: str) -> Port:
    parts = [*spec.split(":"), "", "", "", ""]
    return Port(
        int(parts[0]),
        float(parts[1] or 0) / 1e3,
        float(parts[2] or 0) / 1e6,
        parts[3] or "ok",
        int(parts[4] or 50),
    )


async def main(specs: list[str]) -> None:
    counts = Counts()

    def accepting(port: Port) -> object:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    await serve_one(reader, writer, port, counts)
            except (ConnectionError, asyncio.IncompleteReadError):
                writer.close()

        return accept

    servers = [
        await asyncio.start_server(accepting(port), "127.0.0.1", port.number)  # type: ignore[arg-type]
        for port in map(parse_port, specs)
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1:]))
