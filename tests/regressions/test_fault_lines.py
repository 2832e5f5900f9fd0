"""A fault line names what is wrong with a secret, never the secret."""

import pytest

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import load_bytes

POOL = """
providers: {p: {dialect: openai, base_url: "http://127.0.0.1:9/v1"}}
keys: [{id: k, provider: p, secret: %s}]
models: [{provider: p, model: m}]
combos: [{id: auto, family: classic, strategy: priority, members: all}]
default_combo: auto
auth: {mode: none}
"""


@pytest.mark.parametrize("secret", ["9988776655", "-9988776655", "9988776655.5"])
def test_a_secret_that_yaml_reads_as_a_number_is_not_printed(secret: str) -> None:
    with pytest.raises(ConfigInvalidError) as told:
        load_bytes((POOL % secret).encode(), {})

    assert "99887766" not in str(told.value)
    assert not any("99887766" in str(part) for part in told.value.args)
    assert not any("99887766" in line for line in vars(told.value).get("lines", ()))
