"""The gateway service of edgeweave."""
