"""The files of a result: tables, graphs, curves, figures, made from what was fitted."""
