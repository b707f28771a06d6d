"""What a restructuring must not change, recorded from outside: see README.md."""
