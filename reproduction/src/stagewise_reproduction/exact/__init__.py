"""The paper's own problems of a round, which its tractable forms lose to nowhere but in hope: OPLB and OPNLB, exact."""
