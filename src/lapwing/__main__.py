"""`python -m lapwing` is the command line."""

from lapwing.cli.start import main

main()
