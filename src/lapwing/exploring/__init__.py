"""The explorer: one page, for any browser, in which a representation can be looked at and tried."""
