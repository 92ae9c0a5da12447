"""The paper's algorithms as printed, for comparison with the corrected forms. Do not use them to serve decisions."""
