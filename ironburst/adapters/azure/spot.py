"""What spot costs: Azure's public price list, which needs no login. One price for all zones of a region."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import requests

from ironburst.ports import OutcomeUnknown

URL = os.environ.get("AZURE_RETAIL_PRICES_URL", "https://prices.azure.com/api/retail/prices")
"""another of a stand-in's"""
_WHAT = "retail prices"


def prices(region: str, sizes: Sequence[str], *, url: str = URL, timeout_s: float = 30.0) -> dict[str, float]:
    """{size: USD an hour} of those that are sold as spot there, with Linux. Raises OutcomeUnknown."""
    found = dict[str, float]()
    for size in sorted(sizes):
        query = f"armRegionName eq '{region}' and armSkuName eq '{size}' and priceType eq 'Consumption'"
        for item in _items(url, {"$filter": query, "currencyCode": "USD"}, timeout_s):
            try:
                linux = "Windows" not in item["productName"]
                if linux and "Spot" in item["skuName"] and item["currencyCode"] == "USD" and item["unitPrice"] > 0:
                    found[size] = float(item["unitPrice"])
            except (KeyError, TypeError, ValueError) as error:
                raise OutcomeUnknown(f"{_WHAT}: a shape that isn't known ({error})") from None
    return found


def _items(url: str, query: dict[str, str], timeout_s: float) -> Iterator[Any]:
    before = set[str]()
    following: dict[str, str] | None = query
    while url not in before:
        before.add(url)
        try:
            answer = requests.get(url, params=following, timeout=timeout_s)
            answer.raise_for_status()
            page = answer.json()
            yield from page["Items"]
            url, following = page.get("NextPageLink") or "", None
        except (requests.RequestException, ValueError, KeyError, TypeError, AttributeError) as error:
            raise OutcomeUnknown(f"{_WHAT}: no answer ({type(error).__name__}: {error})") from None
        if not url:
            return
    raise OutcomeUnknown(f"{_WHAT}: the list goes round in a circle")
