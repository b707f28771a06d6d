"""What a run will cost, known before it starts: disk, memory, and hours from a probe of some seconds."""
