"""Plans, boots, requests for servers, and polls between a zone and the zones around it."""
