"""Drives a host with the specification's own client, unmodified, and says as JSON what it saw.

Usage: drive.py ADDRESS TOKEN. The token is of a tenant that has the conformance fixtures.
It must never reach behind the client: everything goes through its public methods.
"""

import json
import sys
import uuid

from openwop_client import (
    CancelRunRequest,
    CreateRunRequest,
    OpenwopClient,
    PauseRunRequest,
    WopError,
    is_error_code,
    project_id,
)


def key():
    """A fresh request key."""
    return str(uuid.uuid4())


def refusal(call):
    """The status and code of a call that must be refused."""
    try:
        call()
    except WopError as error:
        assert error.envelope is not None, error.raw_text
        assert is_error_code(error.envelope.error), error.envelope.error
        return [error.status, error.envelope.error]
    raise AssertionError("it was not refused")


def followed(client, run_id):
    """The types of the events until the stream ends by itself, which are in the order of their numbers."""
    events = list(client.runs_events(run_id))
    numbers = [event.sequence for event in events]
    assert numbers == sorted(set(numbers)), numbers
    assert all(event.runId == run_id for event in events), events
    return [event.type for event in events]


def polled(client, run_id):
    """The types of all events, polled until the run is terminal, and its last status."""
    types, after = [], None
    while True:
        page = client.runs_poll_events(run_id, after_sequence=after, timeout_seconds=20)
        types += [event.type for event in page.events]
        after = page.lastSequence
        if page.isTerminal:
            return types, page.status


def listed(client):
    """The ids of all runs, two to a page."""
    ids, cursor = [], None
    while True:
        page = client.runs_list(limit=2, cursor=cursor)
        assert len(page.runs) <= 2, page
        ids += [run.runId for run in page.runs]
        cursor = page.next_cursor
        if cursor is None:
            return ids


def main(address, token):
    client = OpenwopClient(base_url=address, api_key=token)
    saw = {}

    capabilities = client.discovery_capabilities()
    saw["versions"] = [capabilities.protocolVersions, capabilities.preferredVersion]
    saw["families"] = sorted(capabilities.families)
    saw["fixtures"] = capabilities.fixtures

    noop = CreateRunRequest(workflowId="conformance-noop", inputs={"n": 1}, tags=["a", "b"], metadata={"team": "red"})
    one = key()
    first = client.runs_create(noop, idempotency_key=one)
    again = client.runs_create(noop, idempotency_key=one)
    other = client.runs_create(noop, idempotency_key=key())
    saw["replayed"] = first == again
    saw["another"] = other.runId != first.runId
    changed = CreateRunRequest(workflowId="conformance-noop", inputs={"n": 2})
    saw["mismatch"] = refusal(lambda: client.runs_create(changed, idempotency_key=one))
    saw["short key"] = refusal(lambda: client.runs_create(noop, idempotency_key="short"))

    saw["followed"] = followed(client, first.runId)
    saw["polled"], saw["ended as"] = polled(client, first.runId)
    run = client.runs_get(first.runId)
    saw["run"] = [run.runId == first.runId, run.workflowId, run.status, run.tags, run.metadata, run.eventLogSchemaVersion]
    saw["owner"] = [run.owner.tenant, run.owner.subject.tenant]
    effects = client.runs_effects(first.runId)
    saw["effects"] = [effects.runId == first.runId, len(effects.effects)]

    failing = client.runs_create(CreateRunRequest(workflowId="conformance-failure"), idempotency_key=key())
    polled(client, failing.runId)
    failed = client.runs_get(failing.runId)
    saw["failed"] = [failed.status, failed.error.code]

    long = CreateRunRequest(workflowId="conformance-delay", inputs={"delayMs": 30_000}, scopeId="order-42")
    delayed = client.runs_create(long, idempotency_key=key(), dedup=True)
    saw["scope"] = refusal(lambda: client.runs_create(long, idempotency_key=key(), dedup=True))
    saw["paused"] = client.runs_pause(delayed.runId, PauseRunRequest(drainPolicy="immediate")).status
    saw["paused again"] = refusal(lambda: client.runs_pause(delayed.runId))
    saw["resumed"] = client.runs_resume(delayed.runId, idempotency_key=key()).status
    cancelled = client.runs_cancel(delayed.runId, CancelRunRequest(reason="lunch"), idempotency_key=key())
    saw["cancelling"] = cancelled.status in ("cancelling", "cancelled")
    _, saw["cancelled as"] = polled(client, delayed.runId)
    saw["cancelled again"] = refusal(lambda: client.runs_cancel(delayed.runId))

    ids = listed(client)
    ours = [delayed.runId, failing.runId, other.runId, first.runId]
    saw["listed"] = [run for run in ids if run in ours] == ours and len(ids) == len(set(ids))

    foreign = "not-the-callers/" + first.runId.split("/")[1]
    saw["foreign"] = refusal(lambda: client.runs_get(foreign))
    saw["unknown"] = refusal(lambda: client.runs_get(first.runId.split("/")[0] + "/" + str(uuid.uuid4())))
    saw["link"] = first.statusUrl == "/runs/" + project_id(first.runId)
    saw["other major"] = refusal(OpenwopClient(base_url=address, api_key=token, major=3).discovery_capabilities)
    print(json.dumps(saw))


if __name__ == "__main__":
    main(*sys.argv[1:])
