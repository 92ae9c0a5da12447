"""The desk: what a request meets. It decides on a snapshot, has the log written, and answers; it learns nothing itself."""
