"""Who asks, and what they may do."""

from dataclasses import dataclass

from service.db.tenant_names import DEFAULT_TENANT
from service.http.problems import ProblemCode, ProblemError
from service.http.scopes import MEANING, Scope


@dataclass(frozen=True)
class Identity:
    """Whose rows a request may reach, and what it may do to them."""

    tenant: str
    scopes: frozenset[Scope]
    # None where nobody is asked for a key.
    key_id: str | None

    def require(self, scope: Scope) -> None:
        """Raise `ProblemError` if the key has not this scope."""
        if scope not in self.scopes:
            has = ", ".join(f"`{known}`" for known in Scope if known in self.scopes)
            raise ProblemError(
                ProblemCode.INSUFFICIENT_SCOPE,
                f"{MEANING[scope].capitalize()} needs a key with the scope `{scope}`; this one "
                f"has {has}.",
            )


ANYONE = Identity(DEFAULT_TENANT, frozenset(Scope), key_id=None)
