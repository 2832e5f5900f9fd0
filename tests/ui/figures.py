"""Whether what the dashboard shows of a ranking is what the document says, to the last digit."""

import json
from typing import Any

from tests.ui.browser import Visit


def check_figures(visit: Visit, told: Any) -> None:
    """Every figure of a ranking stands on the page as it is in the document."""
    page = visit.page
    for summary in page.locator("#ranking summary").all():
        summary.click()
    rows = visit.rows("Ranked routes")
    assert [row[0] for row in rows] == [str(place["rank"]) for place in told["ranking"]]
    for place, row in zip(told["ranking"], rows, strict=True):
        route = place["route"]
        assert row[1].startswith(route)
        factors = visit.rows(f"Factors of {route}")
        assert [one[0] for one in factors] == [one["name"] for one in place["factors"]]
        for cells, factor in zip(factors, place["factors"], strict=True):
            names = ("weight", "value", "contribution", "samples")
            shown = [float(cells[at]) for at in (1, 2, 3, 5)]
            assert shown == [factor[name] for name in names]
            assert cells[4] == factor["source"]
        multipliers = visit.rows(f"Multipliers of {route}")
        assert [(one[0], float(one[1])) for one in multipliers] == [
            (one["name"], one["value"]) for one in place["multipliers"]
        ]
        for reason in place["reasons"]:
            assert reason in row[-1]
        formula = page.locator(f"tr.more:has(summary:has-text({json.dumps(route)})) .formula")
        assert formula.inner_text().endswith(f"= score {shortest(place['score'])}")
        bars = page.locator(f"tr:has-text({json.dumps(route)}) .stack").first.locator(".segment")
        titles = [bar.get_attribute("title") for bar in bars.all()]
        assert titles == [
            f"{one['name']}: {shortest(one['contribution'])}" for one in place["factors"]
        ]


def shortest(number: float) -> str:
    """As JavaScript writes it."""
    return str(int(number)) if number == int(number) else repr(number)
