"""The stages of a run: ingest, aggregate, plan, release, publish, report; and the amendment of a contract."""
