"""Evidence: the copies and the background knowledge of an attacker, and what can be estimated from them."""
