"""From targets to validated episodes: environments, files, Minari data sets."""
