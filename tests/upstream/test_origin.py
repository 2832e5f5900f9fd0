import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.upstream.origin import Place, parse_origin


@pytest.mark.parametrize(
    ("url", "place", "target", "authority"),
    [
        ("https://api.x.com/v1", Place("api.x.com", 443, is_tls=True), "/v1", "api.x.com"),
        ("http://API.x.com:80", Place("api.x.com", 80, is_tls=False), "/", "api.x.com"),
        ("http://x:8080/", Place("x", 8080, is_tls=False), "/", "x:8080"),
        ("https://x:80/", Place("x", 80, is_tls=True), "/", "x:80"),
        ("http://[::1]:81/a", Place("::1", 81, is_tls=False), "/a", "[::1]:81"),
        ("http://x/a%2Fb/%C3%A4", Place("x", 80, is_tls=False), "/a%2Fb/%C3%A4", "x"),
        ("http://x/a?b=1&c=%20?#end", Place("x", 80, is_tls=False), "/a?b=1&c=%20?", "x"),
        ("http://x?b", Place("x", 80, is_tls=False), "/?b", "x"),
        ('http://x/"<a>', Place("x", 80, is_tls=False), "/%22%3Ca%3E", "x"),
        ("http://u:p@x/", Place("x", 80, is_tls=False), "/", "x"),
        (
            "http://a_b.svc.local./",
            Place("a_b.svc.local.", 80, is_tls=False),
            "/",
            "a_b.svc.local.",
        ),
    ],
)
def test_url_is_taken_apart(url: str, place: Place, target: str, authority: str) -> None:
    origin = parse_origin(url)

    assert origin is not None
    assert origin.place == place
    assert origin.head.split("\r\n")[:2] == [f"POST {target} HTTP/1.1", f"host: {authority}"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/v1",
        "//x/",
        "x",
        "ftp://x/",
        "http://",
        "http://:80/",
        "http://x:0/",
        "http://x:65536/",
        "http://x:y/",
        "http://[::1",
        "http://[zz]/",
        "http://a b/",
        "http://a/b c",
        "http://a\r\nx: y/",
        "http://a\tb/",
        "http://%41/",
        "http://x,y/",
        "http://münchen.de/",
    ],
)
def test_url_that_is_none_is_refused(url: str) -> None:
    assert parse_origin(url) is None


@given(st.text(), st.text())
def test_no_url_adds_a_line_to_the_head(host: str, rest: str) -> None:
    origin = parse_origin(f"http://{host}/{rest}")

    if origin is not None:
        assert origin.head.count("\n") == origin.head.count("\r\n") == 3
        assert origin.head.count(" ") == 4
        assert origin.head.isascii()
