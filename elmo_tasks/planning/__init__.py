"""What a run will cost, known before it starts: disk, memory, and hours, from trials of some seconds."""
