"""The commands: one thin module each."""

import gc

# Imports make many objects and no garbage: with Python's threshold of 700 the collector takes a tenth of every start.
gc.set_threshold(50_000)
