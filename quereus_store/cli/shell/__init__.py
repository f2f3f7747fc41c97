"""The interactive shell: line editing, completion and the dot commands."""
