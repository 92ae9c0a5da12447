"""The page of the desk: is it safe, is it learning, is it worth it. Rendered here; nothing comes from elsewhere."""
