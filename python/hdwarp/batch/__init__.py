"""batch: from cameras, products and frames to a list of shots, and from shots to files."""
