"""Writers of one graph in the formats that other tools read."""
