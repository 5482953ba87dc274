"""The Dask engine: the workers of an existing cluster, or of one on this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import urlsplit

from sfumato.engines import Engine, In, Out, Secret
from sfumato.engines._key_broker import key_broker
from sfumato.engines.local import cores
from sfumato.errors import EngineError, install_hint
from sfumato.keys.key import Key


class Dask(Engine):
    """The workers of a `dask.distributed` cluster; the work of a worker that dies is repeated by another."""

    address_option = "--scheduler"

    def __init__(self, client: Any) -> None:
        """Use a `distributed.Client`."""
        self._client = client
        self._own: list[Any] = []

    @classmethod
    def at(cls, address: str | None, threads: int | None) -> Dask:
        try:
            import distributed  # noqa: PLC0415 - an extra
        except ImportError:
            raise EngineError(f"the Dask engine needs dask; {install_hint('dask')}") from None
        own: list[Any] = []
        if address is None:
            own = [distributed.LocalCluster(n_workers=threads or cores(), threads_per_worker=1, dashboard_address=None)]
        try:
            client = distributed.Client(own[0] if own else address, timeout="10s")
        except (OSError, ValueError, TimeoutError) as error:
            raise EngineError(f"no Dask scheduler answers at {address}: {error or 'timed out'}") from None
        engine = cls(client)
        engine._own = [client, *own]
        return engine

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        waiting: deque[Any] = deque()
        try:
            for item in items:
                # never pure: the results are small, and the work is done by its side effects
                waiting.append(self._client.submit(function, item, pure=False))
                if len(waiting) > self._ahead():
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            self._client.cancel(list(waiting))

    def _ahead(self) -> int:
        """The number of items in flight: enough that no worker waits for the next one."""
        return 3 * max(int(sum(self._client.nthreads().values())), 1)

    def _result(self, future: Any) -> Any:
        from distributed.scheduler import KilledWorker  # noqa: PLC0415 - an extra

        try:
            return future.result()
        except KilledWorker as error:
            raise EngineError(
                f"workers died repeatedly at one file, {error.task}; look at their logs: it is mostly memory"
            ) from None

    def shared_key(self, key: Key) -> AbstractContextManager[Secret]:
        """Serve the key at the address by which this process talks to the scheduler."""
        return key_broker(urlsplit(self._client.scheduler_comm.comm.local_address).hostname or "127.0.0.1", key)

    def close(self) -> None:
        for resource in self._own:
            resource.close()
