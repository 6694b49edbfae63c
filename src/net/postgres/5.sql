-- Version 5: a client can tell that the server lost changes, after a failover or a restore. A login takes back its own
-- consumption of a signal, if nobody received the answer. Clients of version 4 continue to work.

-- One row. A database that was created again has another one.
CREATE TABLE policyd.server (epoch text NOT NULL);
INSERT INTO policyd.server (epoch) VALUES (md5(random()::text || clock_timestamp()::text));

ALTER TABLE policyd.applied
    -- Version of the group that the operation made. Null: it changed nothing, or it is from before version 5.
    ADD COLUMN version bigint;
CREATE INDEX applied_version ON policyd.applied (grp, version) WHERE version IS NOT NULL;
ALTER TABLE policyd.document
    -- Login that ended the signal.
    ADD COLUMN ended_by name;

-- Identifies the history of this server: a promoted standby and a restored server have another timeline or system.
CREATE FUNCTION policyd.read_epoch() RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    epoch text := (SELECT it.epoch FROM policyd.server AS it LIMIT 1);
BEGIN
    RETURN epoch || (SELECT '-' || it.system_identifier FROM pg_control_system() AS it)
        || (SELECT '-' || it.timeline_id FROM pg_control_checkpoint() AS it);
-- A provider can withhold these functions. The marks of versions then tell alone.
EXCEPTION WHEN insufficient_privilege OR undefined_function THEN
    RETURN epoch;
END $$;

-- The operation of a transaction makes the versions of its documents.
CREATE FUNCTION policyd.note_operation() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('policyd.operation', NEW.id, true);
    RETURN NULL;
END $$;
CREATE TRIGGER note_operation AFTER INSERT ON policyd.applied
    FOR EACH ROW EXECUTE FUNCTION policyd.note_operation();

CREATE FUNCTION policyd.note_version() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    operation text := current_setting('policyd.operation', true);
BEGIN
    -- A session can set any operation; it marks only those of its own login.
    IF starts_with(operation, format('%I/', session_user)) THEN
        UPDATE policyd.applied SET version = NEW.version WHERE grp = NEW.grp AND id = operation;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER note_version AFTER INSERT OR UPDATE OF version ON policyd.document
    FOR EACH ROW EXECUTE FUNCTION policyd.note_version();

-- Returns the mark of the change that made a version: another change of the same version has another one.
CREATE FUNCTION policyd.read_mark(wanted text, wanted_version bigint) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT md5(it.id) FROM policyd.applied AS it WHERE it.grp = wanted AND it.version = wanted_version LIMIT 1
$$;

-- Returns where a group is, null if it is unknown to this account, and the mark of a version that a client saw.
CREATE FUNCTION policyd.read_state(wanted text, seen bigint)
    RETURNS TABLE (version bigint, now_ms bigint, epoch text, mark text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT it.version, it.now_ms, policyd.read_epoch(),
        CASE WHEN policyd.may_use(wanted) THEN policyd.read_mark(wanted, seen) END
    FROM policyd.read_group(wanted) AS it
$$;

-- Returns changed documents as `read_changes` does, each with the mark of its version.
CREATE FUNCTION policyd.read_page(wanted text, since bigint, rows_max int, bytes_max int)
    RETURNS TABLE (kind text, name text, version bigint, body text, is_large boolean, mark text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT it.kind, it.name, it.version, it.body, it.is_large, policyd.read_mark(wanted, it.version)
    FROM policyd.read_changes(wanted, since, rows_max, bytes_max) AS it ORDER BY it.version
$$;

-- An agent does not change what belongs to another account: its requests, runs, and claims. As in version 4; only
-- `ended_by` and `is_reopened` are new.
CREATE OR REPLACE FUNCTION policyd.check_owner() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known jsonb := CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.body::jsonb END;
    next jsonb := NEW.body::jsonb;
    is_own boolean := known IS NULL OR coalesce(OLD.created_by = session_user, false);
    holder text := coalesce(known -> 'claim' ->> 'holder', known -> 'claim' ->> 'by', '');
    claim_changes boolean := next -> 'claim' IS DISTINCT FROM known -> 'claim';
    is_claimed boolean;
    answer jsonb := known -> 'answer';
    notified text[] := ARRAY['told_at', 'times_told'];
    end_changes boolean := next -> 'ended' IS DISTINCT FROM known -> 'ended';
    -- The login that consumed a signal gives it back.
    is_reopened boolean := known -> 'ended' ->> 'outcome' = 'consumed' AND next -> 'ended' IS NULL
        AND OLD.ended_by = session_user;
BEGIN
    NEW.created_by := CASE WHEN known IS NULL THEN session_user ELSE OLD.created_by END;
    NEW.claimed_by := CASE WHEN claim_changes THEN session_user WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.claimed_by END;
    NEW.ended_by := CASE WHEN end_changes THEN session_user WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.ended_by END;
    IF pg_has_role(session_user, 'policyd_human', 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.grp, NEW.kind, NEW.name) IS DISTINCT FROM (OLD.grp, OLD.kind, OLD.name) THEN
        RAISE EXCEPTION 'a document keeps its name' USING ERRCODE = '42501';
    END IF;
    -- The claim of another account, or one whose account is unknown. A lease that a wrong clock made too long does not count.
    is_claimed := holder <> '' AND policyd.time_of(known -> 'claim' ->> 'until')
        BETWEEN clock_timestamp() AND clock_timestamp() + interval '25 hours'
        AND OLD.claimed_by IS DISTINCT FROM session_user;
    IF is_claimed AND (next IS NULL OR claim_changes
        OR next ->> 'queue' IS DISTINCT FROM known ->> 'queue'
        -- The host of a signal can close it although another one claimed it.
        OR NOT is_own AND end_changes) THEN
        RAISE EXCEPTION 'another account claimed this' USING ERRCODE = '42501';
    END IF;
    PERFORM policyd.check_values(NEW.kind, known, next);
    PERFORM policyd.check_size(NEW.grp, NEW.kind, TG_OP, next::text);
    IF NEW.kind = 'run' AND known IS NOT NULL THEN
        -- A record from before version 4 belongs to the account that changes it first.
        NEW.created_by := coalesce(OLD.created_by, session_user);
        IF NEW.created_by <> session_user OR next IS NULL THEN
            RAISE EXCEPTION 'only its own host records a run' USING ERRCODE = '42501';
        END IF;
    ELSIF NEW.kind = 'approval' AND known IS NOT NULL THEN
        IF NOT is_own THEN
            RAISE EXCEPTION 'only its own account changes a request' USING ERRCODE = '42501';
        END IF;
        IF (answer ->> 'taken')::boolean AND next -> 'answer' IS NOT NULL
            AND NOT (next -> 'answer' ->> 'taken')::boolean THEN
            RAISE EXCEPTION 'an answer lets a call pass once' USING ERRCODE = '42501';
        END IF;
        -- A refusal holds for a day, and an allowance for an hour or until it is taken.
        IF answer IS NOT NULL AND next -> 'answer' IS NULL
            AND NOT ((answer ->> 'allowed')::boolean AND (answer ->> 'taken')::boolean)
            AND policyd.time_of(answer ->> 'at') + (CASE WHEN (answer ->> 'allowed')::boolean
                THEN interval '59 minutes' ELSE interval '23 hours 59 minutes' END) > clock_timestamp() THEN
            RAISE EXCEPTION 'only a human takes an answer back' USING ERRCODE = '42501';
        END IF;
    ELSIF NEW.kind = 'escalation' AND known IS NOT NULL THEN
        IF jsonb_strip_nulls(known) - notified IS DISTINCT FROM jsonb_strip_nulls(next) - notified THEN
            RAISE EXCEPTION 'a request to a human cannot be changed' USING ERRCODE = '42501';
        END IF;
        IF policyd.time_of(next ->> 'told_at') > clock_timestamp() + interval '1 hour' THEN
            RAISE EXCEPTION 'a notification cannot be in the future' USING ERRCODE = '42501';
        END IF;
    ELSIF NEW.kind = 'signal' THEN
        IF end_changes AND NOT coalesce(is_reopened, false) AND (known -> 'ended' IS NOT NULL
            OR coalesce(next -> 'ended' ->> 'outcome', '') NOT IN ('closed', 'consumed')
            OR NOT is_own AND next -> 'ended' ->> 'outcome' = 'closed'
            OR coalesce((next ->> 'asks')::boolean, true) AND next -> 'ended' ->> 'outcome' <> 'closed') THEN
            RAISE EXCEPTION 'only a human answers a request' USING ERRCODE = '42501';
        END IF;
    END IF;
    RETURN NEW;
END $$;

-- The table and the functions belong to the owner of the tables, who can be another account than the one that migrates.
DO $$
DECLARE
    owner name := (SELECT tableowner FROM pg_tables WHERE schemaname = 'policyd' AND tablename = 'document');
    one regprocedure;
BEGIN
    EXECUTE format('ALTER TABLE policyd.server OWNER TO %I', owner);
    FOR one IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'policyd'::regnamespace
        AND pg_get_userbyid(proowner) <> owner LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO %I', one, owner);
    END LOOP;
END $$;

REVOKE ALL ON policyd.server FROM PUBLIC, policyd_agent, policyd_human;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA policyd FROM PUBLIC;
GRANT ALL ON policyd.server TO policyd_admin;
GRANT EXECUTE ON FUNCTION policyd.read_state(text, bigint), policyd.read_page(text, bigint, int, int)
    TO policyd_agent, policyd_human;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA policyd TO policyd_admin;
