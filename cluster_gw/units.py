"""Names for ids and constants for conversions; every other module takes its units from here."""

from typing import Final, NewType

KeyId = NewType("KeyId", str)
"""Configured id of a provider key (`[a-z0-9][a-z0-9_-]{0,63}`), never the secret."""

RouteId = NewType("RouteId", str)
"""`provider/model`, or `provider/model@endpoint` for a relay."""

ComboId = NewType("ComboId", str)
ClientId = NewType("ClientId", str)
LeaseId = NewType("LeaseId", str)
"""UUIDv7 of the request plus the attempt number, minted by us: the operation id of a mutation."""

MS_PER_S: Final = 1000
US_PER_MS: Final = 1000
US_PER_S: Final = 1_000_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000
MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400
BYTES_PER_MB: Final = 1_048_576
BYTES_PER_KB: Final = 1024
