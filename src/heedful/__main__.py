"""Run the command line with ``python -m heedful``."""

import sys

from heedful.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
