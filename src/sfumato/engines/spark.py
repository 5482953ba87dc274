"""The Spark engine: the executors of an existing cluster, or of one on this machine."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import pyarrow as pa

from sfumato.engines import Engine, In, Out, Secret
from sfumato.engines._key_broker import key_broker
from sfumato.engines.local import cores
from sfumato.errors import EngineError, SfumatoError, install_hint
from sfumato.keys.key import Key


class Spark(Engine):
    """The executors of a Spark cluster, through `mapInArrow`; the work of a lost executor is repeated by another."""

    address_option = "--master"

    def __init__(self, session: Any) -> None:
        """Use a `SparkSession`."""
        self.session = session
        self._own: list[Any] = []

    @classmethod
    def at(cls, address: str | None, threads: int | None) -> Spark:
        try:
            from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra
        except ImportError:
            raise EngineError(f"the Spark engine needs pyspark; {install_hint('spark')}") from None
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # unless set otherwise, workers run this Python
        builder = SparkSession.builder.appName("sfumato").master(address or f"local[{threads or cores()}]")
        try:
            engine = cls(builder.config("spark.ui.showConsoleProgress", "false").getOrCreate())
        except Exception as error:  # Java exceptions have many types
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise EngineError(f"no Spark session could be started at {address or 'this machine'}: {first}") from None
        engine._own = [engine.session]
        return engine

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        rest, cores = iter(items), max(self.session.sparkContext.defaultParallelism, 2)
        while wave := list(islice(rest, 16 * cores)):
            yield from self._wave(function, wave, 4 * cores)

    def _wave(self, function: Callable[[In], Out], wave: list[In], pieces: int) -> list[Out]:
        """Run a wave in a few more pieces than cores: a piece costs some 50 ms, and uneven ones balance out."""
        numbers = self.session.range(0, len(wave), 1, min(len(wave), pieces))
        done = numbers.mapInArrow(_Task(function, wave), "item long, result binary").collect()
        found = [pickle.loads(row.result) for row in sorted(done, key=lambda row: row.item)]  # noqa: S301 - our own
        for result in found:
            if isinstance(result, SfumatoError):
                raise result
        return found

    def shared_key(self, key: Key) -> AbstractContextManager[Secret]:
        """Serve the key at the address by which executors talk to the driver."""
        return key_broker(self.session.conf.get("spark.driver.host"), key)

    def close(self) -> None:
        for session in self._own:
            session.stop()


class _Task:
    """What an executor does with a partition: numbers of items come in, results go out."""

    def __init__(self, function: Callable[[Any], Any], items: list[Any]) -> None:
        self._function, self._items = function, items

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for item in batch.column(0).to_pylist():
                result = pickle.dumps(self._result(item))
                yield pa.RecordBatch.from_pydict({"item": [item], "result": [result]})

    def _result(self, item: int) -> Any:
        try:
            return self._function(self._items[item])
        except SfumatoError as error:  # a refusal is final, so Spark need not try again
            return error
