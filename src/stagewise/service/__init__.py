"""The desk: a decision service that keeps its limits, and a log that proves it."""
