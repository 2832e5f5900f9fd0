"""What the admin API of a worker works with, joined."""

from cluster_gw.app.configuration import Configuration
from cluster_gw.app.editing import Editing
from cluster_gw.app.engine import Engine
from cluster_gw.app.key_reports import KeyReports
from cluster_gw.server.admin.desk import Desk
from cluster_gw.store.audit import Audit
from cluster_gw.store.pins import Pins


def build_desk(engine: Engine, configuration: Configuration) -> Desk:
    """Build it for one worker.

    Args:
        engine: its inner parts.
        configuration: what is in force there.
    """
    base = engine.base
    editor = Editing(
        configuration,
        engine.overlays,
        engine.config_watch,
        mint_id=engine.deps.mint_id,
        server_ms=engine.coordination.server_clock_ms,
    )
    return Desk(
        deps=engine.deps,
        foresight=engine.foresight,
        records=engine.records,
        editor=editor,
        penalties=engine.penalties,
        windows=engine.windows,
        health=KeyReports(engine.deps.current, engine.health, engine.deps.log),
        cache=engine.cache_index,
        audit=Audit(base.redis, base.scripts, base.keys),
        fleet=engine.coordination.fleet,
        pins=Pins(base.redis, base.keys, monotonic_s=base.clock.monotonic_s),
        server_ms=engine.coordination.server_clock_ms,
        usage=engine.usage,
    )
