"""``python -m ioportal_client``: the same as ``ioportal``."""

import sys

from ioportal_client.commands import main

if __name__ == "__main__":
    sys.exit(main())
