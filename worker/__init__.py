"""What runs: job execution, exports and figures, the embedded launcher and the command line."""
