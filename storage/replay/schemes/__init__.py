"""How the steps of a batch are chosen: the schemes, their sum tree, and their settings."""
