"""The table of all keys in Redis; `docs/redis-keys.md` is made of it."""

from typing import Final

from cluster_gw.store.key_shape import KeyShape
from cluster_gw.store.usage_shapes import USAGE_SHAPES

KEY_SHAPES: Final = (
    KeyShape(
        pattern="w:{<provider>.<account>}:<key>:<model>",
        type="hash",
        ttl="27 h",
        content="Counters and leases of a key on one model. now: newest second, its requests and "
        "tokens, those of the minute; period (hour, or calendar day yyyymmdd), its end in ms, "
        "requests and tokens of the day; leases in flight, and until when (ms) none of them "
        "expires. s0..s8: requests and tokens of seconds that are over, in bytes (lua/README.md), "
        "d0..d3: the same of hours. @<lease id>: R in flight, F its slot freed because the worker "
        "was dead, X expired; expiry (ms), worker, second, period, estimate, prompt tokens.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:<key>:_all",
        type="hash",
        ttl="27 h",
        content="The same for a key over all its models; only where the key has limits.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:_acct",
        type="hash",
        ttl="27 h",
        content="The same for an account over all its keys; only where the account has limits.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:<key>:<model>:<client>",
        type="hash",
        ttl="27 h",
        content="The same for what one client takes of such a window, or of that of key or account "
        "(…:<key>:_all:<client>, …:_acct:<client>); only of clients with limits.key_share.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:<key>:_caps",
        type="hash",
        ttl="32 days",
        content="What a key with caps has used over all its models, by UTC's calendar. now: day "
        "(yyyymmdd), its end in ms, its requests and weighted tokens (thousandths); month "
        "(yyyymm), its end in ms, its tokens; until when (ms) no lease expires. @<lease id>: R in "
        "flight, X expired; expiry (ms), worker, day, month, estimate, prompt tokens, weight "
        "(thousandths).",
    ),
    KeyShape(
        pattern="h:{<provider>.<account>}:<key>:<model>",
        type="hash",
        ttl="54 h",
        content="Health of a key on one model, while there is something to say. rest_until (ms), "
        "rest_source, rest_reason; rest_set_at: when the incident began; hits: when the ladder was "
        "climbed; limited_at: the last rate limit where no day's limit is known. streak, "
        "streak_at: ends in a row that were forgiven, and when the last was. breaker: closed, open "
        "or half_open; fails in a row; opened_at, until (ms); gen: number of the last "
        "transition; trial: the lease that tries it, until trial_until (ms). 80 min when only "
        "results of old leases are to be fenced off.",
    ),
    KeyShape(
        pattern="h:{<provider>.<account>}:<key>:_all",
        type="hash",
        ttl="54 h",
        content="The same for a key over all its models: only a rest, and the trial after it.",
    ),
    KeyShape(
        pattern="m:{<provider>}:<model>",
        type="hash",
        ttl="argument",
        content="A model over all its keys, while there is something to say: as long as points, "
        "failures or a bench count, and 10 min. points: its penalty, decaying since points_since "
        "(ms); points_by: key and failure that raised it last; hits: how often since it was 0. "
        "failures: those that count for a bench: lease id, when (ms), key, code each. "
        "bench_until (ms), bench_set_at (ms); bench_by: key and code of each failure that set it.",
    ),
    KeyShape(
        pattern="pb:{<provider>}",
        type="hash",
        ttl="1 day",
        content="Breaker of a whole provider, while there is something to say. state: open or "
        "half_open, else closed; failed: targets (key/model) that failed lately, when (ms); "
        "succeeded_at: the last success that was told; changed_at: when it opened or closed; "
        "until (ms); trial: the lease that tries it, of trial_worker, until trial_until (ms). "
        "1 min while it never opened, 80 min after it closed.",
    ),
    KeyShape(
        pattern="hz:{<provider>}",
        type="zset",
        ttl="20 min",
        content="Lease id whose end was booked for its model, and with /p for its provider; score "
        "when it may be forgotten (ms): after 10 min.",
    ),
    KeyShape(
        pattern="b:{<provider>.<account>}:<key>:<model>",
        type="hash",
        ttl="31 days",
        content="How a key did lately on one model. now: number of the newest six hours, then "
        "weights of successes, of failures, of timeouts among them, output tokens, latency and "
        "time to first byte in ms, weight of what has one. older, edge: the same sums of the "
        "buckets before. p0..p3: these one by one, the latest first, seven sums of two bytes each: "
        "0, or 1000 + 2000 * ln(sum). A weight halves every two days; it is 1 at the start of its "
        "bucket, in older and edge at that of the newest. month: month in UTC (yyyymm) and tokens "
        "used in it. 8 days, or to the end of the month.",
    ),
    *USAGE_SHAPES,
    KeyShape(
        pattern="kc:{<provider>.<account>}:<key>",
        type="string",
        ttl="30 s",
        content="The worker that checked a key last, after its provider had refused it: nobody "
        "else checks it meanwhile.",
    ),
    KeyShape(
        pattern="{probe}:keys",
        type="hash",
        ttl="1 day",
        content="Checks of resting keys. <provider>.<key>: when the next is due (ms), and how many "
        "changed nothing; fence: of the term that wrote last.",
    ),
    KeyShape(
        pattern="lz:{<provider>.<account>}",
        type="zset",
        ttl="80 min",
        content="Lease id, score when it may be forgotten (ms): 10 min after its expiry, or after "
        "its settlement if that came later.",
    ),
    KeyShape(
        pattern="c:{<client>}",
        type="hash",
        ttl="32 days",
        content="Counters and holds of a client that has limits: as a window, but the period is a "
        "calendar month in UTC (yyyymm) with tokens and micro-USD, and a hold ends with estimate, "
        "prompt tokens, micro-USD reserved, and what of them stays when it expires.",
    ),
    KeyShape(
        pattern="cz:{<client>}",
        type="zset",
        ttl="80 min",
        content="Hold id, score when it may be forgotten (ms), as in lz.",
    ),
    KeyShape(
        pattern="{status}:keys",
        type="hash",
        ttl="7 days",
        content="What checks said of each key, by <provider>.<key>: status (unknown, healthy, "
        "invalid, disabled), rejections in a row, checked at (ms), since (ms), what the last check "
        "said, reason of the last rejection. Delete a field, and its key is used until it is "
        "checked again.",
    ),
    KeyShape(
        pattern="{status}:models",
        type="hash",
        ttl="30 days",
        content="What failures proved of a model, by <provider>.<model>: suspected or retired, "
        "proven at (ms), the request that met it, reason. Delete a field, and the model is used "
        "again.",
    ),
    KeyShape(
        pattern="{status}:tools",
        type="hash",
        ttl="1 day",
        content="When a model last refused tools (ms), by <provider>.<model>: for an hour it goes "
        "behind the others for requests with tools. Delete a field, and it does not.",
    ),
    KeyShape(
        pattern="{status}:pool",
        type="hash",
        ttl="1 day",
        content="Whether few providers are usable: degraded (1 or 0), turning (since when it has "
        "spoken for the other, ms), usable and total providers, fence.",
    ),
    KeyShape(
        pattern="{status}:orders",
        type="hash",
        ttl="1 day",
        content="Checks of keys that an operator ordered and that are not done: * for all, "
        "<provider>, or <provider>.<key>; ordered at (ms), begun at (0: not yet), fence of the "
        "term at it. =last: when the last pass that was ordered ended and began (ms), and how "
        "many keys were valid, rejected, unknown.",
    ),
    KeyShape(
        pattern="{auth}:strangers",
        type="hash",
        ttl="2 min",
        content="Requests without a valid key this minute by IPv4 address or IPv6 network, of at "
        "most 10,000 of them; _rest: of all others; _minute: which minute since the epoch.",
    ),
    KeyShape(
        pattern="e:{<client>}:<route>",
        type="hash",
        ttl="14 days",
        content="What settlements taught of a client's estimates on a route: sums that halve in a "
        "day, of about a thousand requests at most. at (ms): when they were as they are; requests; "
        "in_guessed, in_used, in_squares: input tokens by the heuristic, as reported, and the "
        "squares of these over the guess; the same of output.",
    ),
    KeyShape(
        pattern="rr:{<combo>}:<epoch>",
        type="string",
        ttl="1 day",
        content="Round-robin cursor of a combo: how often it was advanced. The epoch changes with "
        "its strategy and its members.",
    ),
    KeyShape(
        pattern="pin:{<combo>}:<epoch>:<scope>:<key>",
        type="hash",
        ttl="argument",
        content="Which route a run or a session of a client stays on. route: what answered last; "
        "by: the turn of the request it answered; turn: of the last request that looked. The key "
        "is a hash; the epoch changes with the strategy of the combo and with its members.",
    ),
    KeyShape(
        pattern="lkg:{<combo>}:<epoch>",
        type="hash",
        ttl="1 day",
        content="The last known good route of a combo: the same fields.",
    ),
    KeyShape(
        pattern="rsp:{<answer>}",
        type="hash",
        ttl="1 day",
        content="Which key keeps an answer of the Responses API that its client may go on from by "
        "previous_response_id. The name is a hash of the client and of that id; route: route and "
        "key, with a blank between them; by, turn: as of `pin`.",
    ),
    KeyShape(
        pattern="ses:<client>:{<session>}:t:<turn>",
        type="string",
        ttl="argument",
        content="What a model thought beside its tool calls, and its vendor's proofs of these. "
        "JSON: model, reasoning, signatures; sealed where GW_MASTER_KEY is set. Session and turn "
        "are hashes. In the Redis of redis.cache_url; no limit depends on it.",
    ),
    KeyShape(
        pattern="ses:<client>:{<session>}:h",
        type="string",
        ttl="argument",
        content="With sessions.context_handoff: which model answered a session last, and the last "
        "messages, cut short. JSON: model, messages; sealed likewise, and in the same Redis.",
    ),
    KeyShape(
        pattern="c4:{<digest>}",
        type="string",
        ttl="argument",
        content="A stored answer, by the digest of its request. A line of text: format, when it "
        "was stored and when it ends (ms); then the answer, compressed, and sealed where "
        "GW_MASTER_KEY is set. In the Redis of redis.cache_url, as all of c4…; no limit depends "
        "on it.",
    ),
    KeyShape(
        pattern="c4l:{<digest>}",
        type="hash",
        ttl="11 min",
        content="Who fetches an answer: owner (worker), token (a fence that only grows), until "
        "(ms), format of what it writes, ears (workers that follow), why: how it ended. Gone with "
        "the answer where nobody followed.",
    ),
    KeyShape(
        pattern="c4f:{<digest>}:<token>",
        type="list",
        ttl="1 min",
        content="What that leader has received so far, in pieces, sealed as answers are. Only "
        "where another worker follows.",
    ),
    KeyShape(
        pattern="c4i:{cache}",
        type="zset",
        ttl="40 days",
        content="The index of stored answers: key without its prefix, score its last use (ms).",
    ),
    KeyShape(
        pattern="c4s:{cache}",
        type="hash",
        ttl="40 days",
        content="What is known of each: bytes, client, model. And sums: bytes, hits, misses, "
        "saved_prompt and saved_completion (tokens), stored, evicted, expired, removed; flushed, "
        "flushed:c:<client>, flushed:m:<model>: when that was ordered last (ms).",
    ),
    KeyShape(
        pattern="c4e:{cache}",
        type="zset",
        ttl="40 days",
        content="The same keys, score when each ends (ms).",
    ),
    KeyShape(
        pattern="c4d:{cache}",
        type="zset",
        ttl="40 days",
        content="Keys that left the index and are being deleted, score since when (ms); whoever "
        "stores something deletes those that are here for more than a second.",
    ),
    KeyShape(
        pattern="ik:<client>:{<digest>}",
        type="hash",
        ttl="argument",
        content="The call that has an Idempotency-Key of a client; the digest is SHA-256 of it. "
        "body: digest of its request; token: number of the call, greater than all before it; "
        "state: held (owner: its worker; until: ms; followed: somebody waits for its pieces), "
        "kept (answer: what the client was sent, msgpack, sealed where GW_MASTER_KEY is set) or "
        "free (why). In the Redis of redis.cache_url.",
    ),
    KeyShape(
        pattern="ikf:<client>:{<digest>}",
        type="list",
        ttl="10 min",
        content="Pieces of a streamed answer under an Idempotency-Key while it comes and somebody "
        "else waits for it, sealed likewise; gone with its end.",
    ),
    KeyShape(
        pattern="lead:{<role>}",
        type="hash",
        ttl="1 day",
        content="Who has a role of the cluster: owner (worker id), until (ms), fence (grows with "
        "each new term).",
    ),
    KeyShape(
        pattern="{snap}:cur",
        type="hash",
        ttl="1 day",
        content="The snapshot that all workers rank by: version, at (when its building began, ms), "
        "fence of its builder's term, and blob, JSON: use of windows (requests and tokens of the "
        "minute, of the day, in flight, end of the calendar day), health, statistics (the sums of "
        "b:… as of at), tokens of the month, unwell models and providers, each by the key they "
        "were read from.",
    ),
    KeyShape(
        pattern="{snap}:speed",
        type="hash",
        ttl="none",
        content="How fast routes were by what was measured, for the time when that is forgotten: "
        "route (percent-encoded) to its speed rank, 1 (fastest) to 10; _written_at (ms). Routes "
        "that no configuration has any more go with the next writing.",
    ),
    KeyShape(
        pattern="q:{req<digit>}:<kind>",
        type="hash",
        ttl="argument",
        content="What is told of requests (docs/explain.md), by their ids: JSON, without what was "
        "asked or answered. digit: the last of the id; kind: notable (failed, fell back, asked for "
        "detail) or plain.",
    ),
    KeyShape(
        pattern="qz:{req<digit>}:<kind>",
        type="zset",
        ttl="argument",
        content="When each of them was kept (ms), so that the oldest can go.",
    ),
    KeyShape(
        pattern="{cfg}:overlay",
        type="hash",
        ttl="none",
        content="What was changed through the admin API: version, id of its writing, at (ms), and "
        "patches, JSON: what stands over each group's file, by noun and id. Workers that know a "
        "newer one than stands here put it back; `DELETE /api/config` removes what it says, but "
        "for `epochs`, which count what is not remembered any more, keys of clients, and "
        "`key_secrets`: secrets of providers' keys, encrypted under GW_MASTER_KEY (`sealed`, in "
        "base64; `master` and `place` name what opens it).",
    ),
    KeyShape(
        pattern="{cfg}:audit",
        type="zset",
        ttl="90 days",
        content="What operators changed: JSON, see `/api/audit`; score when (ms). The newest 2000.",
    ),
    KeyShape(
        pattern="{mem}:workers",
        type="zset",
        ttl="80 min",
        content="Worker id, score its last beat (ms). Silent for 4 s means dead.",
    ),
    KeyShape(
        pattern="{mem}:states",
        type="hash",
        ttl="80 min",
        content="Worker id, what it said last of itself, once a second: JSON, see `/api/workers`.",
    ),
    KeyShape(
        pattern="{mem}:drains",
        type="hash",
        ttl="80 min",
        content="Worker id, since when operators want it drained (ms). HDEL ends that within a "
        "second.",
    ),
    KeyShape(
        pattern="{doctor}", type="string", ttl="1 s", content="A trial of `cluster-gw doctor`."
    ),
    KeyShape(
        pattern="{meta}",
        type="hash",
        ttl="none",
        content="schema: the newest that writes here; min_reader: the oldest that may read.",
    ),
)
"""Patterns without the prefix; angle brackets mark percent-encoded text."""
