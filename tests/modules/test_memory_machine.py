"""Random operations on a memory table agree with a dictionary."""

from unittest import mock

from quereus_store.modules.conformance.machine import module_machine
from quereus_store.modules.memory import MemoryModule, sorted_rows, table
from quereus_store.modules.memory import chunks as chunk_functions


def make_memory(services):
    module = MemoryModule()
    module.attach(services)
    return module


TestMemoryTables = module_machine(make_memory, examples=25).TestCase


class TestTinyChunks(module_machine(make_memory, examples=40).TestCase):
    """The same with chunks of a few rows, so that they split, join and are merged all the time."""

    @classmethod
    def setUpClass(cls):
        sizes = {"FULL": 4, "LARGEST": 6, "SMALLEST": 2}
        cls.patches = [
            mock.patch.multiple(chunk_functions, **sizes),
            mock.patch.multiple(sorted_rows, **sizes, SPARSE=1),
            # Two rows are a batch, and indexes look the rows of any batch up later.
            mock.patch.multiple(table, FEW=1, LATE=1000),
        ]
        for patch in cls.patches:
            patch.start()

    @classmethod
    def tearDownClass(cls):
        for patch in cls.patches:
            patch.stop()
