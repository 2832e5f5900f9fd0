"""Each alert fires for what it is about, and for nothing else, as Prometheus itself reckons."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.monitoring.promql import FILES, rules

SITE: Final = 'namespace="n", job="gw"'
ONE: Final = f'{SITE}, instance="i1"'
TWO: Final = f'{SITE}, instance="i2"'
KEY: Final = f'{ONE}, provider="p", key="k"'
MANY: Final = "0+60x60"  # one a second
FEW: Final = "0+1x60"
NONE: Final = "0x60"
FLAT: Final = "1x60"

FIRES: Final[dict[str, dict[str, str]]] = {
    "GwAbsent": {},
    "GwWorkerSilent": {
        f"gw_workers_count{{{ONE}}}": "2x60",
        f"gw_group_workers_wanted_count{{{ONE}}}": "3x60",
    },
    "GwWorkerRestarts": {f'gw_child_restarts_total{{{ONE}, child="w0"}}': FEW},
    "GwWorkersDied": {f"gw_leases_reaped_total{{{ONE}}}": FEW},
    "GwDrainsLong": {f"gw_draining_workers_count{{{ONE}}}": FLAT},
    "GwRequestsCrash": {f"gw_requests_crashed_total{{{ONE}}}": FEW},
    "GwLogLinesDropped": {f"gw_log_lines_dropped_total{{{ONE}}}": FEW},
    "GwSpansDropped": {f"gw_spans_dropped_total{{{ONE}}}": MANY},
    "GwClockSkew": {f"gw_clock_offset_seconds{{{ONE}}}": "3x60"},
    "GwRedisLost": {
        f"gw_redis_up_count{{{ONE}}}": FLAT,
        f"gw_workers_count{{{ONE}}}": "2x60",
    },
    "GwAlone": {f'gw_alone_workers_count{{{ONE}, mode="share"}}': FLAT},
    "GwRedisUnsteady": {f"gw_redis_reconnects_total{{{ONE}}}": FEW},
    "GwRedisSlow": {
        f'gw_redis_wait_seconds_bucket{{{ONE}, le="0.05"}}': NONE,
        f'gw_redis_wait_seconds_bucket{{{ONE}, le="0.1"}}': MANY,
        f'gw_redis_wait_seconds_bucket{{{ONE}, le="+Inf"}}': MANY,
    },
    "GwJournalWaits": {
        f"gw_journal_entries_count{{{ONE}}}": "7x60",
        f'gw_alone_workers_count{{{ONE}, mode="share"}}': NONE,
    },
    "GwSettlementsPending": {f"gw_settlements_pending_count{{{ONE}}}": "1001x60"},
    "GwSettlementsLost": {f"gw_settlements_lost_total{{{ONE}}}": FEW},
    "GwRecordUnreadable": {f"gw_records_unreadable_total{{{ONE}}}": FEW},
    "GwSnapshotStale": {f"gw_snapshot_age_seconds{{{ONE}}}": "21x60"},
    "GwEventsDeaf": {
        f"gw_events_up_count{{{ONE}}}": FLAT,
        f"gw_workers_count{{{ONE}}}": "2x60",
    },
    "GwCacheRedisLost": {
        f"gw_cache_redis_up_count{{{ONE}}}": FLAT,
        f"gw_workers_count{{{ONE}}}": "2x60",
    },
    "GwCacheUnavailable": {
        f'gw_cache_requests_total{{{ONE}, result="unavailable"}}': MANY,
        f'gw_cache_requests_total{{{ONE}, result="hit"}}': MANY,
    },
    "GwConfigFileInvalid": {f"gw_config_file_kept_count{{{ONE}}}": FLAT},
    "GwConfigPatchDropped": {f"gw_config_patches_dropped_count{{{ONE}}}": FLAT},
    "GwSecretUnread": {f"gw_secrets_unread_count{{{ONE}}}": FLAT},
    "GwConfigDiffers": {
        f"gw_config_version_count{{{ONE}}}": "3x60",
        f"gw_config_version_count{{{TWO}}}": "4x60",
    },
    "GwPoolExhausted": {
        f'gw_exhausted_total{{{ONE}, code="rate_limit_exceeded"}}': MANY,
        f'gw_requests_total{{{ONE}, combo="auto", status="429"}}': MANY,
    },
    "GwErrors": {
        f'gw_requests_total{{{ONE}, combo="auto", status="503"}}': FEW,
        f'gw_requests_total{{{ONE}, combo="auto", status="200"}}': FEW,
    },
    "GwProviderFails": {
        f'gw_attempts_total{{{ONE}, provider="p", outcome="timeout"}}': MANY,
        f'gw_attempts_total{{{ONE}, provider="p", outcome="success"}}': MANY,
    },
    "GwProviderLimits": {
        f'gw_attempts_total{{{ONE}, provider="p", outcome="rate_limited"}}': "0+3x60",
        f'gw_attempts_total{{{ONE}, provider="p", outcome="success"}}': MANY,
    },
    "GwOverLimit": {f'gw_windows_over_limit_count{{{ONE}, limit="rpm"}}': FLAT},
    "GwKeyRejected": {f'gw_key_routes_count{{{KEY}, state="key_invalid"}}': "2x60"},
    "GwKeyUnused": {
        f'gw_key_routes_count{{{KEY}, state="cooldown"}}': "2x60",
        f'gw_key_routes_count{{{KEY}, state="ok"}}': "_x60",
    },
    "GwBreakerStuck": {
        f'gw_key_routes_count{{{KEY}, state="breaker_open"}}': "1x20",
        f'gw_key_routes_count{{{KEY}, state="half_open"}}': "_x20 1x40",
        f'gw_key_routes_count{{{KEY}, state="ok"}}': FLAT,
    },
    "GwModelBenched": {
        f'gw_key_routes_count{{{KEY}, state="bench"}}': FLAT,
        f'gw_key_routes_count{{{KEY}, state="ok"}}': FLAT,
    },
    "GwModelRetired": {f"gw_models_retired_count{{{ONE}}}": FLAT},
    "GwProviderOpen": {
        f'gw_key_routes_count{{{KEY}, state="provider_open"}}': FLAT,
        f'gw_key_routes_count{{{KEY}, state="ok"}}': FLAT,
    },
    "GwPoolDegraded": {f"gw_pool_degraded_count{{{ONE}}}": FLAT},
    "GwKeyHot": {
        f'gw_key_use_ratio{{{ONE}, provider="p", key="a", limit="rpm"}}': "0.95x60",
        f'gw_key_use_ratio{{{ONE}, provider="p", key="b", limit="rpm"}}': "0.1x60",
    },
    "GwDayNearlyUsed": {
        f'gw_key_use_ratio{{{ONE}, provider="p", key="a", limit="rpd"}}': "0.95x60",
        f'gw_key_use_ratio{{{ONE}, provider="p", key="b", limit="tpd"}}': "0.91x60",
        f'gw_key_use_ratio{{{ONE}, provider="p", key="b", limit="rpd"}}': "0.1x60",
    },
    "GwUsageFull": {f"gw_usage_full_keys_count{{{ONE}}}": FLAT},
    "GwFirstByteSlow": {
        f'gw_first_byte_seconds_bucket{{{ONE}, mode="stream", le="30.0"}}': NONE,
        f'gw_first_byte_seconds_bucket{{{ONE}, mode="stream", le="60.0"}}': MANY,
        f'gw_first_byte_seconds_bucket{{{ONE}, mode="stream", le="+Inf"}}': MANY,
    },
    "GwOverheadHigh": {
        f'gw_overhead_seconds_bucket{{{ONE}, le="0.1"}}': NONE,
        f'gw_overhead_seconds_bucket{{{ONE}, le="0.25"}}': MANY,
        f'gw_overhead_seconds_bucket{{{ONE}, le="+Inf"}}': MANY,
    },
    "GwClientsLimited": {
        f'gw_client_refusals_total{{{ONE}, gate="rpm"}}': MANY,
        f'gw_requests_total{{{ONE}, combo="auto", status="429"}}': MANY,
    },
    "GwClientHolds": {f'gw_client_refusals_total{{{ONE}, gate="concurrency"}}': MANY},
    "GwClientsLeave": {
        f'gw_client_gone_total{{{ONE}, phase="relay"}}': MANY,
        f'gw_requests_total{{{ONE}, combo="auto", status="499"}}': MANY,
    },
    "GwStrangers": {f'gw_client_faults_total{{{ONE}, code="invalid_api_key"}}': "0+300x60"},
}
"""What of each alert is enough to fire it, beside a group that is well."""

WELL: Final = {
    f"gw_workers_count{{{ONE}}}": "2x60",
    f"gw_group_workers_wanted_count{{{ONE}}}": "2x60",
    f"gw_group_workers_count{{{ONE}}}": "2x60",
    f"gw_redis_up_count{{{ONE}}}": "2x60",
    f"gw_events_up_count{{{ONE}}}": "2x60",
    f"gw_cache_redis_up_count{{{ONE}}}": "2x60",
    f"gw_draining_workers_count{{{ONE}}}": NONE,
    f"gw_snapshot_age_seconds{{{ONE}}}": "4x60",
    f"gw_snapshot_version_count{{{ONE}}}": "9+12x60",
    f"gw_clock_offset_seconds{{{ONE}}}": "0.01x60",
    f"gw_usage_full_keys_count{{{ONE}}}": NONE,
    f'gw_alone_workers_count{{{ONE}, mode="share"}}': NONE,
    f'gw_requests_total{{{ONE}, combo="auto", status="200"}}': MANY,
    f'gw_exhausted_total{{{ONE}, code="rate_limit_exceeded"}}': FEW,
    f'gw_attempts_total{{{ONE}, provider="p", outcome="success"}}': MANY,
    f'gw_attempts_total{{{ONE}, provider="p", outcome="timeout"}}': FEW,
    f'gw_attempts_total{{{ONE}, provider="p", outcome="client_abort"}}': MANY,
    f'gw_client_refusals_total{{{ONE}, gate="rpm"}}': FEW,
    f'gw_client_gone_total{{{ONE}, phase="relay"}}': FEW,
    f'gw_client_faults_total{{{ONE}, code="invalid_request"}}': MANY,
    f'gw_key_routes_count{{{KEY}, state="ok"}}': "2x60",
    f'gw_key_use_ratio{{{KEY}, limit="rpm"}}': "0.95x60",
    f"gw_config_version_count{{{ONE}}}": "3x60",
    f"gw_config_version_count{{{TWO}}}": "3x60",
}


def promtool() -> str:
    """Where Prometheus' own tool is; required where everything is."""
    found = shutil.which("promtool")
    if found is None:
        assert os.environ.get("CI") != "true", "promtool is missing: apt-get install prometheus"
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    return found


def firing(series: dict[str, str], names: list[str], *, at: str = "50m") -> dict[str, Any]:
    """A case: these alerts, and no others, have an instance then."""
    looked_for = [rule.name for rule in rules()]
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}} > 0) > bool 0',
                "eval_time": at,
                "exp_samples": [{"labels": "{}", "value": 1}] if name in names else [],
            }
            for name in looked_for
        ],
    }


def run(folder: Path, *cases: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Have promtool reckon."""
    written, rules_file = folder / "cases.yaml", str(FILES / "alerts.yaml")  # JSON is YAML
    written.write_text(
        json.dumps({"rule_files": [rules_file], "evaluation_interval": "5m", "tests": list(cases)})
    )
    return subprocess.run(
        [promtool(), "test", "rules", str(written)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_alert_has_its_case() -> None:
    assert list(FIRES) == [rule.name for rule in rules()]


def test_prometheus_accepts_the_rules() -> None:
    done = subprocess.run(
        [promtool(), "check", "rules", "--lint=all", "--lint-fatal", str(FILES / "alerts.yaml")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_no_alert_fires_for_a_group_that_is_well(tmp_path: Path) -> None:
    done = run(tmp_path, firing(WELL, []))

    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_for_what_it_is_about(tmp_path: Path) -> None:
    cases = [alone(name) for name in FIRES]

    done = run(tmp_path, *cases)

    assert done.returncode == 0, done.stdout + done.stderr


def alone(name: str) -> dict[str, Any]:
    """The case of one alert: what fires it, whatever else that fires."""
    case = firing(FIRES[name] if name == "GwAbsent" else {**WELL, **FIRES[name]}, [name])
    case["promql_expr_test"] = [
        one for one in case["promql_expr_test"] if f'"{name}"' in one["expr"]
    ]
    return case
