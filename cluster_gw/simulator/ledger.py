"""All books of one provider: a meter per key and per limited model, and the story of each id.

`Ledger.arrive` judges a request; the `Charge` it answers with follows that request to its end.
Pure: the clock is an argument (monotonic seconds).
"""

from collections import OrderedDict
from typing import Any

import msgspec

from cluster_gw.simulator.config import SimulatorConfig, key_label
from cluster_gw.simulator.meter import LIMIT_NAMES, Hold, LimitHit, Meter, RateHeaders


class Rejection(msgspec.Struct, frozen=True):
    """A request above its limits; `hits` is never empty."""

    hits: tuple[LimitHit, ...]


class Story:
    """What happened to one directive id over all calls that carried it."""

    __slots__ = ("calls", "images", "keys", "models", "outcomes", "tokens")

    def __init__(self) -> None:
        self.calls = 0
        self.tokens = 0
        self.images = 0
        self.outcomes: list[str] = []
        self.keys: list[str] = []
        self.models: list[str] = []

    def view(self) -> dict[str, Any]:
        """The story as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


class Account:
    """The meters of one key; a meter of a model exists when that model has limits of its own."""

    def __init__(self, config: SimulatorConfig, secret: str) -> None:
        rule = config.keys.get(secret)
        self.label = key_label(config, secret)
        self.meter = Meter(config.default_limits if rule is None else rule)
        per_model = {} if rule is None else rule.models
        self.models = {model: Meter(limits) for model, limits in per_model.items()}

    def meters(self, model: str) -> tuple[Meter, ...]:
        """The meters a request of this model must pass."""
        own = self.models.get(model)
        return (self.meter,) if own is None else (self.meter, own)

    def is_full(self, model: str) -> bool:
        """Whether a concurrency limit would refuse a request now."""
        return any(meter.is_full for meter in self.meters(model))

    def rate_headers(
        self, model: str, now_s: float
    ) -> tuple[RateHeaders | None, RateHeaders | None]:
        """Standing of requests and tokens in the tighter of the meters."""
        pairs = [meter.rate_headers(now_s) for meter in self.meters(model)]
        requests = [pair[0] for pair in pairs if pair[0] is not None]
        tokens = [pair[1] for pair in pairs if pair[1] is not None]
        return (
            min(requests, key=lambda standing: standing.remaining, default=None),
            min(tokens, key=lambda standing: standing.remaining, default=None),
        )

    def stats(self, now_s: float) -> dict[str, Any]:
        """The key's own book and those of its models."""
        models = {model: meter.stats(now_s) for model, meter in self.models.items()}
        return {**self.meter.stats(now_s), "models": models}


class Charge:
    """One accepted request: takes tokens while it is answered and is closed exactly once."""

    def __init__(self, holds: tuple[tuple[Meter, Hold], ...], story: Story | None) -> None:
        self._holds = holds
        self._story = story
        self._prompt_tokens = 0
        self._completion_tokens = 0

    def bill(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Set what the request has cost so far."""
        more_prompt = prompt_tokens - self._prompt_tokens
        more_completion = completion_tokens - self._completion_tokens
        for meter, hold in self._holds:
            meter.charge(hold, more_prompt, more_completion)
        if self._story is not None:
            self._story.tokens += more_prompt + more_completion
        self._prompt_tokens, self._completion_tokens = prompt_tokens, completion_tokens

    def emit(self, completion_tokens: int) -> None:
        """Charge tokens of the answer that were just written."""
        if completion_tokens:
            self.bill(self._prompt_tokens, self._completion_tokens + completion_tokens)

    def close(self, ending: str, outcome: str) -> None:
        """End the request; further calls do nothing.

        Args:
            ending: `completed`, `aborted` (the client left early) or `failed` (a fault).
            outcome: finer word for the story of the id.
        """
        if not self.is_open:
            return
        for meter, hold in self._holds:
            meter.release(hold, ending)
        if self._story is not None:
            self._story.outcomes.append(outcome)

    @property
    def is_open(self) -> bool:
        """Whether the request still counts as in flight."""
        return self._holds[0][1].is_open


class Ledger:
    """Judges arrivals and keeps the books of all keys."""

    def __init__(self, config: SimulatorConfig) -> None:
        self._config = config
        self._accounts = {secret: Account(config, secret) for secret in config.keys}
        self._stories: OrderedDict[str, Story] = OrderedDict()
        self._counts = dict.fromkeys(("requests", "invalid", "unauthorized", "listings"), 0)

    def account(self, secret: str) -> Account | None:
        """The books of a key, or `None` when the provider does not know it.

        A request without a key has the empty one.
        """
        known = self._accounts.get(secret)
        if known is None and self._config.any_key:
            known = self._accounts[secret] = Account(self._config, secret)
        return known

    def count(self, what: str) -> None:
        """Add one to `requests`, `invalid`, `unauthorized` or `listings`."""
        self._counts[what] += 1

    def arrive(
        self, account: Account, *, model: str, now_s: float, request_id: str | None, images: int = 0
    ) -> Charge | Rejection:
        """Judge a valid request: count its violations, then accept or reject it."""
        story = self._story(request_id)
        if story is not None:
            story.calls += 1
            story.images += images
            story.keys.append(account.label)
            story.models.append(model)
        meters = account.meters(model)
        hits: list[LimitHit] = []
        for meter in meters:
            found = meter.hits(now_s)
            meter.count_violations(found)
            hits.extend(found)
        if hits and self._config.enforce:
            for meter in meters:
                meter.refuse()
            if story is not None:
                story.outcomes.append("rejected")
            return Rejection(tuple(hits))
        return Charge(tuple((meter, meter.accept(now_s)) for meter in meters), story)

    def story(self, request_id: str) -> dict[str, Any] | None:
        """What is known of one directive id."""
        story = self._stories.get(request_id)
        return None if story is None else story.view()

    def stats(self, now_s: float) -> dict[str, Any]:
        """All books: totals, keys by label, ids."""
        keys = {account.label: account.stats(now_s) for account in self._accounts.values()}
        summed = ("accepted", "rejected", "completed", "aborted", "failed", "prompt_tokens")
        totals: dict[str, Any] = dict(self._counts)
        for name in (*summed, "completion_tokens", "tokens", "in_flight"):
            totals[name] = sum(book[name] for book in keys.values())
        totals["violations"] = {
            name: sum(_violations(book, name) for book in keys.values()) for name in LIMIT_NAMES
        }
        requests = {name: story.view() for name, story in self._stories.items()}
        return {"totals": totals, "keys": keys, "requests": requests}

    def reset(self) -> None:
        """Forget all counts, windows and ids; requests in flight stay in flight."""
        for account in self._accounts.values():
            for meter in (account.meter, *account.models.values()):
                meter.reset()
        self._stories.clear()
        self._counts = dict.fromkeys(self._counts, 0)

    def _story(self, request_id: str | None) -> Story | None:
        if request_id is None:
            return None
        story = self._stories.get(request_id)
        if story is None:
            story = self._stories[request_id] = Story()
            if len(self._stories) > self._config.remembered_ids:
                self._stories.popitem(last=False)
        return story


def _violations(book: dict[str, Any], name: str) -> int:
    """Violations of a key itself and of its models."""
    books = (book, *book["models"].values())
    return sum(int(each["violations"][name]) for each in books)
