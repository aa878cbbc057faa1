"""What both engines are made of: one compute thread that owns core and model, and sessions at its border.

The event loop moves bytes and messages; the compute thread decides and computes. A turnaround therefore never crosses
threads, and nothing that computes ever waits for a stream.
"""
