"""Models, engine, migrations, and the queries that answer one domain question each."""
