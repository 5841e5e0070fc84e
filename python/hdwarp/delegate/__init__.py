"""delegate: Hydra's nouns as rows: what is drawn, under which row and id, what of it changed; and the pass that renders it."""
