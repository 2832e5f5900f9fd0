from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.store.address import (
    SCHEMES,
    Address,
    AddressError,
    Login,
    Server,
    Tls,
    parse_address,
)

ADDRESSES = [
    ("redis://h", Address(kind="server", servers=(Server("h", 6379),))),
    (
        "redis://u:p%40%2F@h:1/2",
        Address(
            kind="server",
            servers=(Server("h", 1),),
            database=2,
            login=Login(user="u", password="p@/"),
        ),
    ),
    ("redis://[::1]:7/", Address(kind="server", servers=(Server("::1", 7),))),
    ("redis://h?db=3", Address(kind="server", servers=(Server("h", 6379),), database=3)),
    ("unix:///run/s?db=5", Address(kind="server", servers=(Server("/run/s", 0),), database=5)),
    (
        "unix://:pw@/run/s",
        Address(kind="server", servers=(Server("/run/s", 0),), login=Login(password="pw")),
    ),
    ("rediss://h", Address(kind="server", servers=(Server("h", 6379),), tls=Tls())),
    (
        "rediss://h?ssl_ca_certs=/ca&ssl_certfile=/c&ssl_keyfile=/k&ssl_check_hostname=false",
        Address(
            kind="server",
            servers=(Server("h", 6379),),
            tls=Tls(ca_file="/ca", cert_file="/c", key_file="/k", checks_host=False),
        ),
    ),
    (
        "rediss://h?ssl_cert_reqs=none",
        Address(
            kind="server",
            servers=(Server("h", 6379),),
            tls=Tls(is_verified=False, checks_host=False),
        ),
    ),
    (
        "redis+sentinel://a,b:2,[::1]:3/main/4?sentinel_user=su&sentinel_password=sp",
        Address(
            kind="sentinel",
            servers=(Server("a", 26379), Server("b", 2), Server("::1", 3)),
            service="main",
            database=4,
            sentinel_login=Login(user="su", password="sp"),
        ),
    ),
    (
        "rediss+sentinel://:pw@a/main",
        Address(
            kind="sentinel",
            servers=(Server("a", 26379),),
            service="main",
            login=Login(password="pw"),
            tls=Tls(),
        ),
    ),
    (
        "redis+cluster://u:p@a,b:2",
        Address(
            kind="cluster",
            servers=(Server("a", 6379), Server("b", 2)),
            login=Login(user="u", password="p"),
        ),
    ),
    (
        "rediss+cluster://a/0?ssl_ca_certs=/ca",
        Address(kind="cluster", servers=(Server("a", 6379),), tls=Tls(ca_file="/ca")),
    ),
]


@pytest.mark.parametrize(("url", "address"), ADDRESSES, ids=[url for url, _ in ADDRESSES])
def test_every_form_is_read(url: str, address: Address) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://h", "scheme"),
        ("embedded:", "scheme"),
        ("redis://", "every host"),
        ("redis://h:port", "every host"),
        ("redis://h:0", "port"),
        ("redis://h:65536", "port"),
        ("redis://a,b", "several hosts"),
        ("redis://h/x", "database"),
        ("redis://h/1/2", "path"),
        ("redis://h/1?db=2&x=1", "unknown option"),
        ("redis://h?ssl_ca_certs=/ca", "unknown option"),
        ("redis://:p#w@h", "#"),
        ("redis://[::1", "well formed"),
        ("unix://host/run/s", "absolute"),
        ("unix:", "absolute"),
        ("rediss://h?ssl_cert_reqs=optional", "ssl_cert_reqs"),
        ("rediss://h?ssl_check_hostname=1", "ssl_check_hostname"),
        ("rediss://h?ssl_keyfile=/k", "together"),
        ("redis+sentinel://h", "service"),
        ("redis+sentinel://h/main/1/2", "path"),
        ("redis+sentinel://a,,b/main", "every host"),
        ("redis+cluster://h/1", "numbered databases"),
        ("redis+cluster://h?db=1", "unknown option"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(url: str, reason: str) -> None:
    with pytest.raises(AddressError, match=reason):
        parse_address(url)


@given(
    scheme=st.sampled_from([*SCHEMES, "http"]),
    rest=st.text("abc:/@?#[]%,=&.0129 ", max_size=30),
)
def test_no_refusal_repeats_a_password(scheme: str, rest: str) -> None:
    try:
        shown = repr(parse_address(f"{scheme}://secretuser:topsecret@{rest}"))
    except AddressError as fault:
        shown = str(fault)

    assert "topsecret" not in shown
    assert "secretuser" not in shown


@given(
    user=st.text(min_size=1, max_size=20),
    password=st.text(max_size=20),
)
def test_any_login_survives_percent_encoding(user: str, password: str) -> None:

    url = f"redis://{quote(user, safe='')}:{quote(password, safe='')}@h"

    assert parse_address(url).login == Login(user=user, password=password)
