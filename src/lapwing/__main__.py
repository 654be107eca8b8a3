"""`python -m lapwing` is the command line."""

from lapwing.cli.main import main

main()
