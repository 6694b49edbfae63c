-- Version 1: shared documents, applied operations, decisions, members of groups, and three roles.

CREATE SCHEMA IF NOT EXISTS policyd;

CREATE TABLE policyd.migration (
    version int PRIMARY KEY,
    -- Oldest schema version that a client must know to work with this one.
    client_min int NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);

-- Whoever changes a document locks the row of its group. Therefore versions have no gaps, and a reader that
-- has seen a version has seen every version before it.
CREATE TABLE policyd.project_group (
    name text PRIMARY KEY,
    version bigint NOT NULL DEFAULT 0
);

CREATE TABLE policyd.document (
    grp text NOT NULL REFERENCES policyd.project_group (name),
    kind text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    -- Null: removed. Other clients need to see that.
    body json,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (grp, kind, name)
);
CREATE INDEX document_version ON policyd.document (grp, version);

CREATE TABLE policyd.applied (
    grp text NOT NULL,
    id text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (grp, id)
);

CREATE TABLE policyd.decision (
    grp text NOT NULL,
    id text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    entry json NOT NULL,
    PRIMARY KEY (grp, id)
);

-- Without members, every role may use a group.
CREATE TABLE policyd.member (
    grp text NOT NULL,
    login name NOT NULL,
    PRIMARY KEY (grp, login)
);

DO $$
DECLARE role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['policyd_agent', 'policyd_human', 'policyd_admin'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
            END IF;
        -- Roles belong to the whole server: another database can create them at the same time.
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
END $$;

CREATE FUNCTION policyd.may_use(wanted text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
    SELECT NOT EXISTS (SELECT FROM policyd.member WHERE grp = wanted)
        OR EXISTS (SELECT FROM policyd.member WHERE grp = wanted AND login = session_user)
$$;

-- An agent reports and claims. Answers, resets and removals belong to humans.
CREATE FUNCTION policyd.check_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    known json := CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.body END;
    forced_ended boolean := coalesce((known ->> 'cooldown_until')::timestamptz <= clock_timestamp(), false);
BEGIN
    IF pg_has_role(session_user, 'policyd_human', 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF NEW.kind = 'breaker' THEN
        IF NEW.body ->> 'forced' IS DISTINCT FROM known ->> 'forced'
            AND NOT (NEW.body ->> 'forced' IS NULL AND forced_ended) THEN
            RAISE EXCEPTION 'only a human forces a breaker open or ends that' USING ERRCODE = '42501';
        END IF;
        IF known IS NOT NULL AND (NEW.body IS NULL
            OR known ->> 'state' = 'OPEN' AND NEW.body ->> 'state' = 'CLOSED') THEN
            RAISE EXCEPTION 'only a human resets a breaker' USING ERRCODE = '42501';
        END IF;
    ELSIF NEW.kind = 'escalation' THEN
        IF NEW.body IS NULL OR NEW.body ->> 'status' IS DISTINCT FROM 'open'
            AND NEW.body ->> 'status' IS DISTINCT FROM known ->> 'status' THEN
            RAISE EXCEPTION 'only a human answers an escalation' USING ERRCODE = '42501';
        END IF;
    ELSIF NEW.kind = 'task' THEN
        -- An agent finishes a task that it claimed.
        IF NEW.body IS NULL AND known ->> 'queue' IS DISTINCT FROM 'abandoned'
            AND coalesce(known -> 'claim' ->> 'holder', '') = '' THEN
            RAISE EXCEPTION 'only a human resolves a task' USING ERRCODE = '42501';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_document BEFORE INSERT OR UPDATE ON policyd.document
    FOR EACH ROW EXECUTE FUNCTION policyd.check_document();

ALTER TABLE policyd.project_group ENABLE ROW LEVEL SECURITY;
ALTER TABLE policyd.document ENABLE ROW LEVEL SECURITY;
ALTER TABLE policyd.applied ENABLE ROW LEVEL SECURITY;
ALTER TABLE policyd.decision ENABLE ROW LEVEL SECURITY;
CREATE POLICY members ON policyd.project_group USING (policyd.may_use(name));
CREATE POLICY members ON policyd.document USING (policyd.may_use(grp));
CREATE POLICY members ON policyd.applied USING (policyd.may_use(grp));
CREATE POLICY members ON policyd.decision USING (policyd.may_use(grp));

GRANT USAGE ON SCHEMA policyd TO policyd_agent, policyd_human, policyd_admin;
GRANT SELECT ON policyd.migration TO policyd_agent, policyd_human, policyd_admin;
GRANT SELECT, UPDATE (version) ON policyd.project_group TO policyd_agent, policyd_human;
GRANT SELECT, INSERT, UPDATE ON policyd.document TO policyd_agent, policyd_human;
GRANT SELECT, INSERT ON policyd.applied TO policyd_agent, policyd_human;
GRANT INSERT, SELECT (grp, id) ON policyd.decision TO policyd_agent, policyd_human;
GRANT SELECT ON policyd.decision TO policyd_human;
GRANT ALL ON ALL TABLES IN SCHEMA policyd TO policyd_admin;
