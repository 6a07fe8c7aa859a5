"""API keys: who may ask, for whom, and for what."""
