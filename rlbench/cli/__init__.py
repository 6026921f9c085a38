"""The commands: one thin module each."""

import gc
import os

# Imports make many objects and no garbage: with Python's threshold of 700 the collector takes a tenth of every start.
gc.set_threshold(50_000)
# pydantic looks through every installed distribution for plugins of its own: 160 of them with the local extra.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
