"""How a zone reaches the zones below it: plans, boots, requests for servers, and polls."""
