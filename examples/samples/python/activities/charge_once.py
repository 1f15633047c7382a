"""Charges an order exactly once, however often the activity is run again.

It must never look at the number of the attempt, nor remember by itself what it did.
"""

from dataclasses import dataclass
from typing import Any, Literal

from deedbox import Context, activity

from .answers import reason

# These say nothing about the order.
TRY_AGAIN = (401, 407, 408, 425, 429)


@dataclass
class Order:
    """What to charge."""

    provider_url: str
    order: str
    amount_cents: int
    customer: str


@dataclass
class Charge:
    id: str


@dataclass
class Charged:
    charge_id: str
    outcome: Literal["charged"] = "charged"


@dataclass
class Rejected:
    status: int
    reason: Any
    outcome: Literal["rejected"] = "rejected"


@activity
def charge_once(ctx: Context, order: Order) -> Charged | Rejected:
    """Charges a customer for an order, exactly once."""
    answer = ctx.http.post(
        f"{order.provider_url}/v1/charges",
        effect="charge",
        json={"amount_cents": order.amount_cents, "customer": order.customer, "order": order.order},
    )
    if 400 <= answer.status < 500 and answer.status not in TRY_AGAIN:
        return Rejected(answer.status, reason(answer))
    return Charged(answer.error_for_status().json(Charge).id)
