-- The role of all processes but `office migrate`: it reads and writes rows, and changes no schema.
--
-- For psql, in the office's database, as the role that migrates (it must be allowed to create roles) or as a superuser who
-- names that role: `--set=owner=office`. The password is read from POSTGRES_WORKER_PASSWORD. `--set=worker=NAME` chooses
-- another name than office_worker, `--set=schema=NAME` another schema than public. Before the first migration or after
-- it, once or again: what later migrations create is granted as it is created.
\set ON_ERROR_STOP on
\getenv password POSTGRES_WORKER_PASSWORD
\if :{?password}
\else
DO $$ BEGIN RAISE EXCEPTION 'POSTGRES_WORKER_PASSWORD is not set: it becomes the password of the role'; END $$;
\endif
\if :{?owner}
\else
SELECT current_user AS owner \gset
\endif
\if :{?worker}
\else
\set worker office_worker
\endif
\if :{?schema}
\else
\set schema public
\endif

SELECT format('CREATE ROLE %I LOGIN', :'worker')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'worker') \gexec
ALTER ROLE :"worker" LOGIN PASSWORD :'password';

GRANT USAGE ON SCHEMA :"schema" TO :"worker";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA :"schema" TO :"worker";
GRANT USAGE ON ALL SEQUENCES IN SCHEMA :"schema" TO :"worker";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema"
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"worker";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT USAGE ON SEQUENCES TO :"worker";
