"""What types cannot say about an operator's own catalogue of models that presets bring along."""

from cluster_gw.providers.presets import PRESETS
from cluster_gw.settings.embedding import is_plain
from cluster_gw.settings.faults import Absent, Faults, at_name
from cluster_gw.settings.pool import Settings
from cluster_gw.settings.written import Document


def check_catalog(settings: Settings, document: Document, faults: Faults) -> None:
    """Report rows of the operator's catalogue that no provider could bring along."""
    seen: dict[str, str] = {}
    for path, row in document.items("catalog", settings.catalog or ()):
        if isinstance(row.provider, Absent) or isinstance(row.model, Absent):
            continue
        if row.provider not in PRESETS:
            words = faults.unknown(row.provider, sorted(PRESETS))
            faults.add(at_name(path, "provider"), words.replace("unknown", "unknown preset", 1))
        if not is_plain(row.model):
            faults.add(at_name(path, "model"), "must be printable and without spaces")
        first = seen.setdefault(f"{row.provider}/{row.model}", path)
        if first != path:
            faults.add(path, f"is the same model as {first}")
