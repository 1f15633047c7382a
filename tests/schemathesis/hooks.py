"""A component goes over the wire as it is."""

import schemathesis

schemathesis.serializer.alias("application/wasm", "application/octet-stream")
