import uuid

from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.server.ids import Entropy, new_id


@given(now_ms=st.integers(0, 2**48 - 1), noise=st.binary(min_size=10, max_size=10))
def test_an_id_is_a_uuid_of_version_7_that_carries_its_time(now_ms: int, noise: bytes) -> None:
    minted = uuid.UUID(new_id(now_ms, lambda _n: noise))

    assert (minted.version, minted.variant) == (7, uuid.RFC_4122)
    assert minted.int >> 80 == now_ms


def test_ids_sort_by_time_and_differ_by_noise() -> None:
    early = new_id(1, lambda n: b"\xff" * n)
    late = new_id(2, lambda n: b"\x00" * n)

    assert early < late
    assert new_id(1, lambda n: b"\x01" * n) != new_id(1, lambda n: b"\x02" * n)


@given(st.lists(st.integers(1, 16), max_size=900))
def test_bytes_of_the_pool_are_given_once_and_in_full(counts: list[int]) -> None:
    drawn: list[bytes] = []

    def source(count: int) -> bytes:
        drawn.append(bytes((len(drawn) + place) % 256 for place in range(count)))
        return drawn[-1]

    entropy = Entropy(source)
    given_ = [entropy(count) for count in counts]

    assert [len(part) for part in given_] == counts
    rest = b"".join(given_)
    for pool in drawn:
        taken = next(n for n in range(len(pool), -1, -1) if rest.startswith(pool[:n]))
        assert taken > len(pool) - 16 or pool is drawn[-1]
        rest = rest[taken:]
    assert rest == b""
