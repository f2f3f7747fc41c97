"""``python -m quereus_store.cli`` is the ``quereus`` command."""

import sys

from quereus_store.cli.main import main

sys.exit(main())
