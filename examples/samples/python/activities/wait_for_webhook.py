"""Asks for a payment, and waits until somebody says that it was made."""

from dataclasses import dataclass
from typing import Any, Literal

from deedbox import Context, activity


@dataclass
class Payment:
    provider_url: str
    order: str
    wait_ms: int | None = None


@dataclass
class Requested:
    id: str


@dataclass
class By:
    by: Any


@dataclass
class Paid:
    payment_id: str
    by: Any
    outcome: Literal["paid"] = "paid"


@dataclass
class Expired:
    outcome: Literal["expired"] = "expired"


@activity
def wait_for_webhook(ctx: Context, payment: Payment) -> Paid | Expired:
    """Requests a payment and waits for the signal `paid`."""
    answer = ctx.http.post(
        f"{payment.provider_url}/v1/payments",
        effect="request-payment",
        json={"order": payment.order, "reference": ctx.idempotency_key()},
    )
    requested = answer.error_for_status().json(Requested)
    signal = ctx.signals.wait("paid", None if payment.wait_ms is None else payment.wait_ms / 1000)
    return Expired() if signal is None else Paid(requested.id, signal.json(By).by)
