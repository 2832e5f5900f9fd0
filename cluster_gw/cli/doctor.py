"""`cluster-gw doctor`: whether everything that a gateway depends on is as it should be."""

import asyncio
import os
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

import click
import httpx
import msgspec

from cluster_gw.app.doctor import Finding, examine_redis, examine_settings
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.redis import redis_url
from cluster_gw.cli.tables import print_rows
from cluster_gw.settings import Loaded, Settings, config_path, load
from cluster_gw.settings.bundled import provider_facts
from cluster_gw.supervisor.failure import ExitCode, StartError

COLUMNS: Final = MappingProxyType({"status": "", "name": "what", "detail": "found"})
WITHIN_S: Final = 5.0
AT_ONCE: Final = 16


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    healthy: bool
    findings: tuple[Finding, ...]


@click.command("doctor", short_help="Look at all that a gateway depends on.")
@config_option
@click.option("--offline", is_flag=True, help="Do not try to reach providers.")
@json_option
def command(config: str | None, *, offline: bool, as_json: bool) -> int:
    """Look at the configuration, at Redis, and whether providers can be reached; uses no quota.

    Ends with 0, also with warnings; 3 where Redis or a provider cannot be reached, 1 where anything
    else has to be mended.
    """
    loaded = load(config_path(config, os.environ), os.environ)
    findings = [*examine_settings(loaded, os.environ), *asyncio.run(_look(loaded, offline=offline))]
    failed = [one.name for one in findings if one.status == "fail"]
    if as_json:
        click.echo(msgspec.json.encode(Report(healthy=not failed, findings=tuple(findings))))
    else:
        print_rows([msgspec.to_builtins(one) for one in findings], COLUMNS, "")
    if "redis" in failed or "provider" in failed:
        return ExitCode.DEPENDENCY_UNREACHABLE
    return ExitCode.FAILED if failed else ExitCode.OK


async def _look(loaded: Loaded, *, offline: bool) -> list[Finding]:
    try:
        found = await examine_redis(loaded, redis_url(loaded.settings.redis))
    except StartError as fault:  # no embedded one runs
        found = [Finding(name="redis", status="fail", detail=str(fault))]
    if not offline:
        found += await _providers(loaded.settings)
    return found


async def _providers(settings: Settings) -> list[Finding]:
    """Look whether each provider answers at all: a connection, and any answer of HTTP."""
    if settings.upstream.proxy is not None:
        detail = "reached through a proxy: not tried"
        return [Finding(name="provider", status="unknown", detail=detail)]
    gate = asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(timeout=WITHIN_S, trust_env=False) as client:

        async def look(name: str, url: str) -> Finding:
            async with gate:
                return await _provider(client, name, url)

        return await asyncio.gather(
            *(look(name, provider_facts(one).base_url) for name, one in settings.providers.items())
        )


async def _provider(client: httpx.AsyncClient, name: str, url: str) -> Finding:
    place = urlsplit(url).netloc
    try:
        answer = await client.head(url)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as fault:
        detail = f"{name} ({place}) cannot be reached: {type(fault).__name__}"
        return Finding(name="provider", status="fail", detail=detail)
    detail = f"{name} ({place}) answers, with {answer.status_code}"
    return Finding(name="provider", status="ok", detail=detail)
