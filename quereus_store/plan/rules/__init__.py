"""The optimizer's rules, one a file; :mod:`quereus_store.plan.optimizer` lists them in order."""
