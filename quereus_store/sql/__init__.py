"""The SQL front end: text to syntax tree and back."""
