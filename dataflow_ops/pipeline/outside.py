"""Ways to databases and object stores, for the steps that list and fetch.

Their libraries are loaded by the first job that has such a source.
"""

from __future__ import annotations

from dataflow_ops.layers.ingest.outside import Bucket, Outside, Table
from dataflow_ops.source_settings import SourceSettings


def _table(source: SourceSettings) -> Table:
    from dataflow_ops.clients.sql_table import SqlTable

    return SqlTable(
        f"source '{source.source_id}'", source.url, source.key, table=source.table, query=source.query
    )


def _bucket(name: str) -> Bucket:
    from dataflow_ops.clients.s3_objects import ObjectBucket

    return ObjectBucket(name)


OUTSIDE = Outside(_table, _bucket)
