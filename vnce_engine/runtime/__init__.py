"""What passes between a fit and who runs it: progress, checkpoints, devices, memory, arguments.

Imports nothing else of the engine.
"""
