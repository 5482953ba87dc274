"""The other end of a service: `connect` gives what a vault gives, over HTTP."""

from sfumato.client.remote import Remote as Remote
from sfumato.client.remote import connect as connect
