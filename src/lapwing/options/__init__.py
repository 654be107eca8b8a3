"""Options from eigenfunctions: policies that end, what they do to a random walk, and their files."""
