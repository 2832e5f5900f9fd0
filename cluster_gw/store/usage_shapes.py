"""The keys of usage in the table of keys."""

from typing import Final

from cluster_gw.store.key_shape import KeyShape

USAGE_SHAPES: Final = (
    KeyShape(
        pattern="u:{<provider>.<account>}:<key>:<yyyymmdd>",
        type="hash",
        ttl="92 days",
        content="Who used a key on a day (UTC), for what; docs/usage.md. <client> <model>: "
        "requests, prompt, completion, cached and reasoning tokens, nano-USD, requests whose "
        "tokens have no price. <client> <model> <family>: calls that ended in an error of that "
        "family. _other _other: everybody beyond 2000 fields.",
    ),
    KeyShape(
        pattern="{usage}:keys",
        type="zset",
        ttl="92 days",
        content="What the use of a key is counted under ({<provider>.<account>}:<key>), score when "
        "that was noted last, once a day (ms): so that keys are found that no configuration has "
        "any more.",
    ),
    KeyShape(
        pattern="{usage}:saved:<yyyymmdd>",
        type="hash",
        ttl="92 days",
        content="What the response cache saved on a day (UTC). <client> <provider/model>: hits, "
        "prompt and completion tokens that were not asked for again. _other _other: everybody "
        "beyond 2000 fields.",
    ),
    KeyShape(
        pattern="{usage}:told:<worker>",
        type="string",
        ttl="1 day",
        content="Number of the last batch of savings that a worker told: none counts twice.",
    ),
)
