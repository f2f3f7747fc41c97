"""Random operations on a memory table agree with a dictionary."""

from unittest import mock

from quereus_store.modules.conformance.machine import module_machine
from quereus_store.modules.memory import MemoryModule, chunks


def make_memory(services):
    module = MemoryModule()
    module.attach(services)
    return module


TestMemoryTables = module_machine(make_memory, examples=25).TestCase


class TestTinyChunks(module_machine(make_memory, examples=40).TestCase):
    """The same with chunks of a few rows, so that they split, join and are merged all the time."""

    @classmethod
    def setUpClass(cls):
        sizes = {"FULL": 4, "LARGEST": 6, "SMALLEST": 2, "SPARSE": 1}
        cls.patch = mock.patch.multiple(chunks, **sizes)
        cls.patch.start()

    @classmethod
    def tearDownClass(cls):
        cls.patch.stop()
