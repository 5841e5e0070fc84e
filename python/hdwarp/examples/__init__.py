"""examples: runnable, each with a headless self-check: `python -m hdwarp.examples.author_and_render`."""
