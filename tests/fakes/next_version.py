"""The next version of the product: a copy whose settlement writes one field more."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FIELD: Final = "next"
SETTLED: Final = "if caps_now or hour_writes or is_old then\n"
COUNT: Final = f"if lease then\n  call('HINCRBY', KEYS[4], '{FIELD}', 1)\nend\n"
WRITE_MANIFEST: Final = (
    "from pathlib import Path; from cluster_gw.store.manifest import write_manifest; "
    "write_manifest(Path('lua'))"
)


def next_version(folder: Path, *, schema: int, min_reader: int) -> Path:
    """Make a checkout to run from.

    Args:
        folder: where; it must not exist.
        schema: what it writes, above the present one.
        min_reader: the oldest schema whose workers may run beside it.
    """
    for name in ("cluster_gw", "lua"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    scripts = folder / "cluster_gw/store/scripts.py"
    text = scripts.read_text(encoding="utf-8")
    for name, value in (("SCHEMA", schema), ("MIN_READER", min_reader)):
        text, changed = re.subn(rf"(?m)^{name}: Final = \d+$", f"{name}: Final = {value}", text)
        assert changed == 1
    scripts.write_text(text, encoding="utf-8")
    settle = folder / "lua/admission/settle.lua"
    text = settle.read_text(encoding="utf-8")
    assert text.count(SETTLED) == 1
    settle.write_text(text.replace(SETTLED, COUNT + SETTLED), encoding="utf-8")
    subprocess.run([sys.executable, "-c", WRITE_MANIFEST], cwd=folder, check=True)
    return folder
