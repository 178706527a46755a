"""How a zone works with the zones around it: plans, boots, forwarded requests and polls."""
