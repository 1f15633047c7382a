"""The activities of {{name}}: every function with `@activity` is one."""

from dataclasses import dataclass

from deedbox import Context, activity


@dataclass
class Order:
    order: str
    amount_cents: int
    provider_url: str = "https://api.example.com"


@dataclass
class Receipt:
    id: str


@activity
def charge_once(ctx: Context, order: Order) -> Receipt:
    """Charges an order, exactly once."""
    charge = ctx.http.post(
        f"{order.provider_url}/v1/charges",
        effect="charge",
        json={"order": order.order, "amount_cents": order.amount_cents},
    )
    return charge.error_for_status().json(Receipt)
