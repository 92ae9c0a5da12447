"""The web page of the server: is it safe, is it learning, is it worth it. All assets are served from here."""
