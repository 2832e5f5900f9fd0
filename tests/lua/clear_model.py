"""What `lua/health/clear` does, in plain words: of what says something only a fence is left."""

Fields = dict[str, str]


def cleared(fields: Fields, kind: str, now_ms: int) -> tuple[Fields, bool]:
    """Give a record after it was cleared, and whether it had said something."""
    if kind == "target":
        if not set(fields) - {"gen"}:
            return fields, False
        return {"gen": str(max(int(fields.get("gen", 0)) + 1, now_ms * 1000))}, True
    if kind == "provider":
        if not {"state", "failed"} & set(fields):
            return fields, False
        return {"changed_at": str(now_ms)}, True
    is_benched = int(fields.get("bench_until", 0)) > now_ms
    if not is_benched and not {"points", "failures"} & set(fields):
        return fields, False
    return {"bench_until": "0", "bench_set_at": str(now_ms), "bench_by": "cleared"}, True
