"""Whole runs in a folder: learn, train, evaluate, inspect."""
