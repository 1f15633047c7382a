"""The samples that are the same in every language. `deedbox build` imports this package; what it imports is in the
component.
"""

from . import charge_once, driver, import_csv, reject_as_data, wait_for_webhook, welcome_user

__all__ = ["charge_once", "driver", "import_csv", "reject_as_data", "wait_for_webhook", "welcome_user"]
