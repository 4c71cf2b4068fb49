"""The assets, one module per lane."""
