"""Which faults the next request gets: its own directive first, then the script, then its model."""

from collections import Counter, OrderedDict
from typing import Any

import msgspec

from cluster_gw.simulator.directive import Directive, FaultRule
from cluster_gw.simulator.faults import Fault, fault_from_model, fault_kind


class FaultBook:
    """Hands out faults and counts them; remembers how often each rule was used."""

    def __init__(self, provider: str, remembered_ids: int) -> None:
        self._provider = provider
        self._remembered = remembered_ids
        self._script: list[list[Any]] = []
        self._uses: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._applied: Counter[str] = Counter()

    def add(self, rules: list[FaultRule]) -> None:
        """Append rules to the script; earlier ones are used up first."""
        self._script.extend([rule, 0] for rule in rules)

    def clear(self) -> None:
        """Drop the script and what is remembered of directives."""
        self._script.clear()
        self._uses.clear()

    def reset_counts(self) -> None:
        """Forget how many faults were applied."""
        self._applied.clear()

    def stats(self) -> dict[str, Any]:
        """Rules that are left and faults applied so far, by kind."""
        return {"pending": len(self._script), "applied": dict(self._applied)}

    def pending(self) -> list[dict[str, Any]]:
        """The script as it stands: rule and uses so far."""
        return [
            {"rule": msgspec.to_builtins(rule, str_keys=True), "used": used}
            for rule, used in self._script
        ]

    def take(
        self, directive: Directive, *, request_key: str, key: str, model: str
    ) -> tuple[Fault, ...]:
        """The faults of one request.

        Args:
            directive: what the request asks for.
            request_key: names the request over its calls: the directive's id, else its text.
            key: label of the key that was used.
            model: the model that was named.
        """
        faults = (
            self._from_directive(directive, request_key, key=key, model=model)
            or self._from_script(key=key, model=model)
            or _from_model(model)
        )
        self._applied.update(fault_kind(fault) for fault in faults)
        return faults

    def take_for_listing(self, *, key: str) -> tuple[Fault, ...]:
        """The faults of one listing of models, out of the script.

        Args:
            key: label of the key that was used.
        """
        faults = self._from_script(key=key, model="", call="models")
        self._applied.update(fault_kind(fault) for fault in faults)
        return faults

    def _from_directive(
        self, directive: Directive, request_key: str, *, key: str, model: str
    ) -> tuple[Fault, ...]:
        for index, rule in enumerate(directive.fault_rules()):
            if not rule.match.covers(key=key, model=model, provider=self._provider):
                continue
            used = self._uses.get((request_key, index), 0)
            if rule.times is None or used < rule.times:
                self._uses[request_key, index] = used + 1
                if len(self._uses) > self._remembered:
                    self._uses.popitem(last=False)
                return rule.faults
        return ()

    def _from_script(self, *, key: str, model: str, call: str = "generate") -> tuple[Fault, ...]:
        for index, entry in enumerate(self._script):
            rule: FaultRule = entry[0]
            if rule.match.call != call or not rule.match.covers(
                key=key, model=model, provider=self._provider
            ):
                continue
            entry[1] += 1
            if rule.times is not None and entry[1] >= rule.times:
                del self._script[index]
            return rule.faults
        return ()


def _from_model(model: str) -> tuple[Fault, ...]:
    fault = fault_from_model(model)
    return () if fault is None else (fault,)
