"""The service under load: `python -m benchmarks.service`."""
