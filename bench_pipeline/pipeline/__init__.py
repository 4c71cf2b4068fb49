"""Placeholder: replaced by the module that owns this folder."""
