"""What a tenant may be called."""

import re
from typing import Annotated

from pydantic import Field

# Whose rows are where nobody is asked for a key.
DEFAULT_TENANT = "default"
# Whose rows are that were deleted and are yet to be removed; no tenant can be called so.
NOBODY = "-"
MAX_LENGTH = 63
PATTERN = r"^[a-z0-9][a-z0-9-]{0,62}$"
TenantName = Annotated[
    str,
    Field(
        pattern=PATTERN,
        description="Name of a tenant: lower-case letters, digits and hyphens, at most 63.",
    ),
]


def is_tenant(text: str) -> bool:
    """Return whether `text` can be the name of a tenant."""
    return re.fullmatch(PATTERN, text) is not None
