"""Measurements of the engine that are too long or too noisy for tests."""
