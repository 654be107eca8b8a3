"""Running many tasks: in local processes, or on a Ray cluster."""
