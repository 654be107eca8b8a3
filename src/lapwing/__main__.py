"""`python -m lapwing` is the command line."""

from lapwing.cli import main

main()
