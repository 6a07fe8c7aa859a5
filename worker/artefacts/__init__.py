"""The files of a result: tables, graphs, curves, figures, made from what was fitted.

Imports the service's schemas and the engine, no other room here.
"""
