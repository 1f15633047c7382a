"""Reads a list, and writes a summary of it as one whole file."""

import re
from dataclasses import dataclass

from deedbox import Context, Failure, activity

AMOUNT = re.compile(r"[+-]?[0-9]+")


@dataclass
class Import:
    source_url: str
    path: str


@dataclass
class Summary:
    rows: int
    total_cents: int


@activity
def import_csv(ctx: Context, job: Import) -> Summary:
    """Sums the amounts of a list of lines `name,amount_cents` and writes the sum to a file."""
    text = ctx.http.get(job.source_url).error_for_status().text()
    # Line 1 is the header.
    amounts = [amount(line, number) for number, line in enumerate(text.splitlines(), 1) if number > 1]
    summary = Summary(len(amounts), sum(amounts))
    ctx.files.write(job.path, f"rows,total_cents\n{summary.rows},{summary.total_cents}\n", effect="summary")
    return summary


def amount(line: str, number: int) -> int:
    _, comma, cents = line.partition(",")
    if not comma or not AMOUNT.fullmatch(cents):
        raise Failure.permanent("bad-csv", f"line {number} is not a name, a comma and an amount in cents")
    return int(cents)
