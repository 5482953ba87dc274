"""Web pages of the service: the owner's console, the recipient's downloads, the sign-in form and surveys."""
