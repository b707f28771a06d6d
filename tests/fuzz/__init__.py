"""Files that a generator writes by the grammar of each format, with what a reader must make of them."""
