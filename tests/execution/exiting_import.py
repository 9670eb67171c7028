"""A handler's module that ends whoever imports it."""

import sys

sys.exit("no licence")
