"""A worker that only does what the parent needs: serves its sockets, counts, ends."""

import argparse
import asyncio
import contextlib
import importlib
import os
import signal
import socket
from pathlib import Path

import msgspec

DIGEST_BYTES = 16  # before what the parent shares; its module would cost more than all the rest


class Stub:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.reloads = 0
        self.file_version = self.read_file_version()
        self.requests = 0
        self.end = asyncio.Event()

    def readiness(self) -> dict[str, object]:
        order = Path(os.environ.get("STUB_DRAINS", "/nowhere")) / self.options.worker_id
        status = "draining" if order.exists() else "ready"
        return {
            "status": os.environ.get("STUB_STATUS", status),
            "config_version": 1,
            "file_version": self.file_version,
            "snapshot": {"version": 3, "age_ms": 10},
            "redis": "ok",
        }

    def metrics(self) -> dict[str, object]:
        sample = {"suffix": "", "labels": {"combo": "auto"}, "value": self.requests}
        return {
            "families": [
                {"name": "gw_requests_total", "type": "counter", "help": "n", "samples": [sample]}
            ]
        }

    def answer(self, path: str) -> object:
        if path == "/readyz":
            return self.readiness()
        if path == "/metrics.json":
            return self.metrics()
        self.requests += path == "/count"
        told = ("GW_", "OPENBLAS_", "MALLOC_")
        environ = {name: v for name, v in os.environ.items() if name.startswith(told)}
        return {"pid": os.getpid(), "worker": self.options.worker_id, "environ": environ}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            while (await reader.readline()).strip():
                continue
            body = msgspec.json.encode(self.answer(line.split()[1].decode()))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        writer.close()

    def hang_up(self) -> None:
        self.reloads += 1
        self.file_version = self.read_file_version()

    def read_file_version(self) -> int:
        frame = os.pread(self.options.config_fd, 1 << 24, 0)
        return int(msgspec.msgpack.decode(frame[DIGEST_BYTES:])["version"])

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        if "STUB_DEAF" not in os.environ:
            loop.add_signal_handler(signal.SIGTERM, self.end.set)
        else:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        loop.add_signal_handler(signal.SIGHUP, self.hang_up)
        listener = socket.socket(fileno=self.options.fd)
        await asyncio.start_unix_server(self.serve, self.options.control_path)
        await asyncio.start_server(self.serve, sock=listener)
        while not self.end.is_set() and os.getppid() == self.options.parent_pid:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.end.wait(), 0.05)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--control-path", "--worker-id"):
        parser.add_argument(name)
    for name in ("--config-fd", "--fd", "--parent-pid"):
        parser.add_argument(name, type=int)
    options = parser.parse_args()
    code = os.environ.get("STUB_EXIT")
    if code is not None:
        raise SystemExit(int(code))
    broken = os.environ.get("STUB_BREAKS_IF")
    if broken is not None and Path(broken).exists():
        raise SystemExit(7)
    if "STUB_LOADS" in os.environ:  # costs more than all the rest
        importlib.import_module("cluster_gw.settings").load_shared(options.config_fd, os.environ)
    asyncio.run(Stub(options).run())
    os._exit(0)


if __name__ == "__main__":
    main()
