"""Every setting as a documented, checked dataclass."""
