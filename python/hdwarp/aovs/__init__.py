"""aovs: the registry of what a pixel can hold, and the resolve pass that turns a visibility record into it. No USD here."""
