"""Data modification (temporary)."""
from __future__ import annotations
from quereus_store.errors import unsupported
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.nodes import PlanNode
from quereus_store.sql import nodes

def verb_of(node: nodes.DataModification) -> str:
    return type(node).__name__.upper()

def bind_relation(environment: Environment, node: nodes.DataModification) -> PlanNode:
    raise unsupported("data modification", node.position)
