"""The cloud service of edgeweave."""
