"""A measured claim and its target."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One claim: `value` should be at least, or at most, `target`."""

    claim: str
    value: float
    target: float | None = None
    at_most: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target

    @property
    def wanted(self) -> str:
        if self.target is None:
            return "shown"
        return f"{'≤' if self.at_most else '≥'} {self.target:g}"
