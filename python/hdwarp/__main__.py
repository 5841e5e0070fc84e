"""__main__: `python -m hdwarp` is the command `hdwarp`."""

from hdwarp.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
