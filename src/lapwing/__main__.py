"""The command line, of which `python -m lapwing` is another name."""

import sys


def main() -> None:
    """Run it; Ctrl-C while it is still being imported ends it like any later one."""
    try:
        from lapwing.cli.main import main
    except KeyboardInterrupt:
        print("lapwing: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    main()


if __name__ == "__main__":
    main()
