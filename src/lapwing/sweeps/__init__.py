"""Running many tasks: in processes of this machine, or on a Ray cluster."""
