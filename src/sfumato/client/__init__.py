"""The HTTP client of a service: `connect` returns a vault behind a service, with the methods of `Vault`."""

from sfumato.client.remote_vault import RemoteVault as RemoteVault
from sfumato.client.remote_vault import connect as connect
