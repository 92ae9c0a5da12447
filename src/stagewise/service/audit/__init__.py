"""What a log proves: that nothing in it was changed, and that every decision follows from what stands before it."""
