"""The scheduler service of edgeweave."""

import os

# The C core of gRPC reads this when it is imported, so nothing may come before. It writes to stderr in a form of its
# own; what matters there reaches the service as an error as well.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
