"""Options from eigenfunctions: policies with termination, their effect on a random walk, and their files."""
