"""Methods of others, as policies that `sw.simulate(backend="python")` plays.

Where only an abstract or a summary could be read, the method is reconstructed from it; each class says so.
"""
