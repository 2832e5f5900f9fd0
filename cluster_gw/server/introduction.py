"""What whoever passes a call of the admin API on says of it; never a caller's own word."""

from typing import Final

GROUP_HEADER: Final = "x-gw-group"
"""Ids of the workers of the group, with spaces between."""
ACTOR_HEADER: Final = "x-gw-actor"
"""Name of the admin key, or `cli`."""
PEER_HEADER: Final = "x-gw-peer"
"""Address that the call came from."""
