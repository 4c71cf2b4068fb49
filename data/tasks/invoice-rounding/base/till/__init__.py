"""Invoices from till receipts."""

from till.invoice import Invoice, Line, VatGroup
from till.loader import parse

__all__ = ["Invoice", "Line", "VatGroup", "parse"]
