"""The edge service of edgeweave."""
