"""The paper's own optimisation problems, solved exactly: OPLB's convex maximum and OPNLB's maximum over triples."""
