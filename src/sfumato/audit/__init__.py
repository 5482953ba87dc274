"""The audit: try every known attack on copies before they leave, and say what was found."""
