"""Webhooks: signed requests that tell of stops, alerts and changes (docs/how-to/webhooks.md)."""
