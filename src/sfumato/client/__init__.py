"""The other end of a service: `connect` gives what a vault gives, over HTTP."""

from sfumato.client.remote_vault import RemoteVault as RemoteVault
from sfumato.client.remote_vault import connect as connect
