"""The paper's algorithms as printed, for comparison with the corrected forms. Do not serve decisions with them."""
