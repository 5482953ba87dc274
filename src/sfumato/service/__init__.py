"""The service: a vault over HTTP, for recipients who fetch their copies and owners who manage them in a browser."""
