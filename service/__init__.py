"""The HTTP side: datasets, jobs and results over REST, and the records behind them."""
