"""What a schema is made of, as Postgres' own catalog tells it: equal for two databases that are."""

from __future__ import annotations

from sqlalchemy import Engine, text

_QUESTIONS = {
    "columns": """
        SELECT table_name, column_name, data_type, is_nullable, column_default, is_generated, generation_expression,
               is_identity, collation_name
        FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, column_name""",
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexdef",
    "constraints": """
        SELECT conrelid::regclass::text, conname, contype, convalidated, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2""",
    "functions": """
        SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1""",
    "sequences": "SELECT sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'public' ORDER BY 1",
    "triggers": "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2",
    "types": """
        SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd') ORDER BY 1""",
}


def catalog(engine: Engine) -> dict[str, list[tuple]]:
    """Return columns, indexes, constraints, functions, sequences, triggers and types of the schema `public`."""
    with engine.connect() as connection:
        return {
            name: [tuple(row) for row in connection.execute(text(question))] for name, question in _QUESTIONS.items()
        }
