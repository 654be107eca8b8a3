"""The command line: options, progress, reports; the only code that prints."""
