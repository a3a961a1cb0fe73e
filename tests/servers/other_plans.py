"""Plans that the databases would not choose, so that no test passes only because of the order of one plan.

With DB_DEDUP_TEST_OTHER_PLANS=true, the private servers and SQLite return the rows of many queries without
ORDER BY in another order. A server with other statistics or of another version may do the same.
"""

import os
from typing import Final

ARE_ASKED: Final = os.environ.get("DB_DEDUP_TEST_OTHER_PLANS") == "true"

_SETTINGS: Final = {
    "postgresql": {
        f"enable_{way}": "off" for way in ("indexscan", "bitmapscan", "indexonlyscan", "nestloop")
    },
    "mariadb": {"join-cache-level": "8", "optimizer-switch": "mrr=on,mrr_sort_keys=on,mrr_cost_based=off"},
    "mysql": {"optimizer-switch": "mrr_cost_based=off,batched_key_access=on"},
}


def settings_of_plans(server: str) -> dict[str, str]:
    """Return the settings of a server for other plans; none if they are not asked for."""
    return _SETTINGS[server] if ARE_ASKED else {}
