"""Pictures of a fitted model as SVG files: network, heat map, ROC curves, objective."""
