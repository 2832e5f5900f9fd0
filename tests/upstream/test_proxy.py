"""Addresses of proxies, and what is reached without one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.upstream.proxy import Bypass, Proxy, ProxyError, ProxyKind, parse_proxy


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://proxy:3128", Proxy(kind=ProxyKind.HTTP, host="proxy", port=3128)),
        ("HTTP://Proxy:3128/", Proxy(kind=ProxyKind.HTTP, host="proxy", port=3128)),
        ("https://[::1]:443", Proxy(kind=ProxyKind.HTTPS, host="::1", port=443)),
        (
            "socks5://u:p%40%3A%2F@10.0.0.1:1080",
            Proxy(kind=ProxyKind.SOCKS5, host="10.0.0.1", port=1080, user=b"u", password=b"p@:/"),
        ),
        (
            "http://only-a-token@proxy:1",
            Proxy(kind=ProxyKind.HTTP, host="proxy", port=1, user=b"only-a-token"),
        ),
        ("socks5h://p.example:9", Proxy(kind=ProxyKind.SOCKS5H, host="p.example", port=9)),
    ],
)
def test_address_of_a_proxy_is_read(url: str, expected: Proxy) -> None:
    assert parse_proxy(url) == expected


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("proxy:3128", "must begin with http://"),
        ("", "must begin with http://"),
        ("ftp://secret@proxy:1", "must begin with http://"),
        ("socks4://proxy:1", "must begin with http://"),
        ("http://proxy", "must name a port"),
        ("http://proxy:0", "must name a port"),
        ("http://proxy:65536", "is no address"),
        ("http://:3128", "must name a host"),
        ("http://bücher:3128", "must name a host"),
        ("http://-x:3128", "must name a host"),
        ("http://u:p/w@proxy:3128", "is no address"),
        ("http://proxy:3128/secret", "percent-encode"),
        ("http://proxy:3128?secret", "percent-encode"),
        ("http://:secret@proxy:3128", "has a password but no user"),
        ("http://u:secret%0d%0a@proxy:3128", "cannot be sent"),
        ("http://u%3a:secret@proxy:3128", "cannot be sent"),
        ("socks5://u@proxy:3128", "SOCKS5 wants both"),
        (f"socks5://u:{'s' * 256}@proxy:3128", "above 255 bytes"),
    ],
)
def test_fault_of_an_address_says_why_and_never_repeats_it(url: str, words: str) -> None:
    with pytest.raises(ProxyError, match=words) as fault:
        parse_proxy(url)

    assert "secret" not in str(fault.value)


def test_what_is_printed_of_a_proxy_holds_no_credential() -> None:
    proxy = parse_proxy("http://the-user:the-password@proxy:3128")

    assert repr(proxy) == "Proxy(http, proxy, 3128)"
    assert "the-" not in f"{proxy} {[proxy]} {(proxy,)}"


@given(st.text(max_size=60))
def test_no_text_makes_anything_but_a_proxy_or_its_fault(text: str) -> None:
    for url in (text, f"http://{text}", f"socks5://{text}@h:1", f"http://u:{text}@h:1"):
        try:
            assert 0 < parse_proxy(url).port < 65_536
        except ProxyError:
            continue


@pytest.mark.parametrize(
    ("entry", "reached", "not_reached"),
    [
        ("*", ["anything", "10.0.0.1"], []),
        ("api.example.com", ["api.example.com", "API.Example.com."], ["x.api.example.com"]),
        (".example.com", ["example.com", "a.b.example.com"], ["badexample.com", "example.org"]),
        ("*.example.com", ["example.com", "a.example.com"], ["badexample.com"]),
        ("10.0.0.0/8", ["10.1.2.3", "0x0a000001"], ["11.0.0.1", "ten.example"]),
        ("127.0.0.1", ["127.0.0.1", "127.1", "2130706433"], ["127.0.0.2", "localhost"]),
        ("::1", ["::1", "0:0:0:0:0:0:0:1"], ["::2", "127.0.0.1"]),
        ("[::1]", ["::1"], ["::2"]),
        ("fd00::/8", ["fd12::1"], ["fe00::1"]),
        ("api.example.com:443", ["api.example.com"], []),
        ("10.0.0.1:443", ["10.0.0.1"], []),
        ("api.example.com:8443", [], ["api.example.com"]),
    ],
)
def test_bypass_covers_what_its_entries_say(
    entry: str, reached: list[str], not_reached: list[str]
) -> None:
    bypass = Bypass(["elsewhere.example", entry])

    assert [host for host in reached if not bypass.covers(host, 443)] == []
    assert [host for host in not_reached if bypass.covers(host, 443)] == []


@pytest.mark.parametrize("entry", ["", " ", "http://x", "a b", "10.0.0.1/8", "a/b", "bücher", ":"])
def test_entry_that_could_cover_nothing_is_refused(entry: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its argument is the entry
        Bypass([entry])
