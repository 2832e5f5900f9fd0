"""`docs/free-tier.yaml`: the models that presets bring along, as a document to change and name.

`python -m cluster_gw.settings.free_tier_page` writes it; a test compares it.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from cluster_gw.settings.bundled import bundled_catalog
from cluster_gw.settings.pool import ModelSettings

PAGE: Final = Path("docs/free-tier.yaml")
HEAD: Final = """\
# What presets bring along where the configuration declares no models for their provider.
# Made of cluster_gw/providers/free_tier.py by `make docs`. Free tiers change without notice: names,
# limits and allowances are what the providers told, not measured; tiers and ranks are our opinion.
#
# To replace it: copy it, change the copy, and name it in the configuration as
#   catalog: "file:/path/of/the/copy.yaml"
# `provider` is the name of a preset; all fields of `models` may be set (docs/configuration.md).
models:
"""


def catalog_page() -> str:
    """Give our catalogue as a document an operator may change and name."""
    return HEAD + "".join(f"  - {_written(row)}\n" for row in bundled_catalog())


def _written(row: ModelSettings) -> str:
    """One row on one line: JSON is YAML, too."""
    usual = msgspec.to_builtins(ModelSettings(provider="", model=""))
    given = {
        name: _given(value)
        for name, value in msgspec.to_builtins(row).items()
        if value != usual[name] or name in {"provider", "model"}
    }
    members = (f"{name}: {msgspec.json.encode(value).decode()}" for name, value in given.items())
    return f"{{{', '.join(members)}}}"


def _given(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if item is not None}
    return value


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(catalog_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
