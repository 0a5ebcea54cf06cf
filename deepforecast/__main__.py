"""`python -m deepforecast` is the command `deepforecast`."""

import sys

from deepforecast.cli import main

if __name__ == "__main__":
    sys.exit(main())
