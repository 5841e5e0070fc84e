"""shade: what a visible surface looks like: base colour, light, and its encoding for the screen. No USD here."""
