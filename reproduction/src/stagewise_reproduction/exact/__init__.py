"""The paper's own problems of a round, solved as they stand: OPLB's convex maximum and OPNLB's maximum over triples."""
