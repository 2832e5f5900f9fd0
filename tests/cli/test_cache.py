"""`cache key` prints what the key of a request is made of, and the key."""

import msgspec
from click.testing import CliRunner, Result

from cluster_gw.cli.main import run

BODY = b'{"stream":true,"messages":[{"role":"user","content":"h\\u00e9"}],"temperature":0.50}'
FORM = (
    '{"messages":[{"content":"hé","role":"user"}],"model":"auto","surface":"chat",'
    '"temperature":0.5,"v":4}'
)


def key(*arguments: str, body: bytes = BODY) -> Result:
    runner = CliRunner()
    with runner.isolation(input=body) as streams:
        code = run(["cache", "key", "-", *arguments])
        out, err = streams[0].getvalue(), streams[1].getvalue()
    return Result(runner, out, err, out, None, code, None)


def test_the_key_of_a_request_is_shown_with_what_it_is_made_of() -> None:
    plain, as_json = key(), key("--json")
    form, digest = plain.stdout.splitlines()
    assert form == FORM
    assert len(digest) == 64
    assert msgspec.json.decode(as_json.stdout) == {
        "form": msgspec.json.decode(FORM),
        "digest": digest,
    }


def test_the_key_of_a_client_is_another() -> None:
    assert '"client":"app-a"' in key("--client", "app-a").stdout
    assert key("--client", "app-a").stdout != key("--client", "app-b").stdout


def test_what_is_no_request_is_told_in_one_line() -> None:
    for result, words in (
        (key(body=b"{"), "invalid_json"),
        (key("--surface", "caht"), "no surface 'caht'"),
        (key(body=b'{"messages":[{"role":"user","content":"a"}],"x":{"a":1,"a":2}}'), "ambiguous"),
    ):
        assert result.exit_code == 2
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1
