"""The processes that carry messages and run jobs, as they tell of themselves."""
