"""From what a user names to validated episodes: environments, files, Minari data sets."""
