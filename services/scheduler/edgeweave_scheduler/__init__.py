"""The scheduler service of edgeweave."""
