"""Generated from `protos/`; `make protos` regenerates, CI compares."""
