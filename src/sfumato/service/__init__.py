"""HTTP service for a vault: an API from which recipients download their copies, and a web console for data owners."""
