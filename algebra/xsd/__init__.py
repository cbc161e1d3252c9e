"""XSD values: parsing of literals, comparison, arithmetic, and canonical forms."""
