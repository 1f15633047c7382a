"""A business effect, and a rejection that is a value."""

from dataclasses import dataclass
from typing import Any, Literal

from deedbox import Context, activity

from .answers import reason


@dataclass
class Order:
    provider_url: str
    order: str


@dataclass
class Placed:
    order_id: str
    outcome: Literal["placed"] = "placed"


@dataclass
class Rejected:
    reason: Any
    outcome: Literal["rejected"] = "rejected"


@dataclass
class Made:
    id: str


@activity
def reject_as_data(ctx: Context, order: Order) -> Placed | Rejected:
    """Places an order, once for all runs that name it; an order that cannot be placed is no failure."""
    answer = ctx.http.post(
        f"{order.provider_url}/v1/orders",
        business_effect=("place-order", order.order),
        json={"order": order.order},
    )
    if answer.status in (409, 422):
        return Rejected(reason(answer))
    return Placed(answer.error_for_status().json(Made).id)
