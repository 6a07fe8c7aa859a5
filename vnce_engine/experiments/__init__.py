"""The experiments of Rhodes and Gutmann (2019), each in parts that can be run anywhere."""
