"""The standard `logging` module and `print` into the run's log. An author who configures logging by himself, with
`force=True`, takes this back.
"""

import logging
import sys


def to_the_runs_log() -> None:
    """Everything from INFO on goes to stderr, which the host keeps as the run's log; `print` is never held back."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.captureWarnings(True)
    # An activity has no threads and no processes of its own to tell apart.
    logging.logThreads = logging.logMultiprocessing = logging.logProcesses = False
