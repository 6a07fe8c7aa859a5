"""Clients that use an API all at once, each in a thread of its own, for the body of a `with`."""

import threading
from abc import ABC, abstractmethod
from typing import Self


class Clients(ABC):
    """Some clients, which go on until the body ends, and the jobs that were accepted from them."""

    def __init__(self, number: int) -> None:
        self.accepted: list[str] = []
        self.ending = threading.Event()
        self._threads = [threading.Thread(target=self.use) for _ in range(number)]

    @abstractmethod
    def use(self) -> None:
        """Use the API as one client until `ending` is set."""

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ending.set()
        for thread in self._threads:
            thread.join()
