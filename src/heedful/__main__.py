"""Run the command line with ``python -m heedful``."""

from heedful.cli.main import main

if __name__ == "__main__":
    main()
