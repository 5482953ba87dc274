"""The vault: original tables, master key, policies, grants and ledger, in a folder or in a database with a store."""

from sfumato.vault.vault import Vault as Vault
