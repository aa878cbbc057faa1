"""gRPC as the services use it: channels, servers, errors as statuses, lanes.

Knows connections and streams. Does not know what the scheduler or an engine decides.
"""
