"""Using a finished run: predictions for new text, scores on another file."""
