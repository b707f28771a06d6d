"""Tables, figures and pages: what the other packages measured, as text, files and pictures."""
