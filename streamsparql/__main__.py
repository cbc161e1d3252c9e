"""`python -m streamsparql` is the command `streamsparql`."""

import sys

from streamsparql.cli import main

if __name__ == "__main__":
    sys.exit(main())
