"""A measured figure and its target."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the results."""

    section: str
    name: str
    # None: not measured, since something that it needs is not installed.
    value: float | None
    unit: str
    # Such as ">= 10"; empty where the figure is for information.
    target: str = ""

    @property
    def met(self) -> str:
        """Return "yes" or "no", or nothing where there is no target or no figure."""
        if not self.target or self.value is None:
            return ""
        sign, limit = self.target.split()
        bound = float(limit)
        return "yes" if (self.value <= bound if sign == "<=" else self.value >= bound) else "no"
