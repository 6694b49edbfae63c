-- Version 4: accounts of agents and of humans execute functions. They have no access to tables, except that every client can
-- read the version of the schema. Agents change only their own requests, runs, and claims.

ALTER TABLE policyd.document
    -- Login that created the document, and login that claimed it last. Null: unknown, from before version 4.
    ADD COLUMN created_by name,
    ADD COLUMN claimed_by name,
    -- Rows from before version 4 are not checked until they change.
    ADD CONSTRAINT document_kind CHECK (kind IN ('breaker', 'task', 'escalation', 'approval', 'run', 'signal')) NOT VALID,
    ADD CONSTRAINT document_name CHECK (octet_length(name) BETWEEN 1 AND 1024) NOT VALID,
    ADD CONSTRAINT document_body CHECK (json_typeof(body) = 'object') NOT VALID,
    ADD CONSTRAINT document_size CHECK (octet_length(body::text) <= 1048576) NOT VALID;
ALTER TABLE policyd.decision
    ADD COLUMN login name,
    ADD CONSTRAINT decision_id CHECK (octet_length(id) BETWEEN 1 AND 1024) NOT VALID,
    ADD CONSTRAINT decision_size CHECK (octet_length(entry::text) <= 1048576) NOT VALID;
ALTER TABLE policyd.applied
    ADD CONSTRAINT applied_id CHECK (octet_length(id) BETWEEN 1 AND 2048) NOT VALID;

-- Reads a time of a document. PostgreSQL also knows `infinity` and `tomorrow`; clients do not.
CREATE FUNCTION policyd.time_of(value text) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
BEGIN
    IF value !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)?$' THEN
        RAISE EXCEPTION 'a time of the document is invalid' USING ERRCODE = '22007';
    END IF;
    RETURN value::timestamptz;
END $$;

-- What an agent must not write, because other accounts could not repair it or would believe it for ever.
CREATE FUNCTION policyd.check_values(kind text, known jsonb, next jsonb) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    soon timestamptz := clock_timestamp() + interval '25 hours';
    generation numeric := coalesce((next -> 'claim' ->> 'generation')::numeric, 0);
    last_generation numeric := coalesce((known -> 'claim' ->> 'generation')::numeric, 0);
BEGIN
    -- The longest lease is a day.
    IF next IS NOT NULL AND next -> 'claim' IS DISTINCT FROM known -> 'claim' THEN
        IF policyd.time_of(next -> 'claim' ->> 'until') > soon THEN
            RAISE EXCEPTION 'a lease lasts at most a day' USING ERRCODE = '42501';
        END IF;
        IF generation < 0 OR generation > last_generation + 1
            OR kind = 'task' AND generation < last_generation THEN
            RAISE EXCEPTION 'the number of a claim follows the last one' USING ERRCODE = '42501';
        END IF;
    END IF;
    IF kind = 'breaker' AND policyd.time_of(next ->> 'cooldown_until') > clock_timestamp() + interval '32 days'
        AND next ->> 'cooldown_until' IS DISTINCT FROM known ->> 'cooldown_until' THEN
        RAISE EXCEPTION 'only a human keeps a breaker open for more than a month' USING ERRCODE = '42501';
    END IF;
    IF kind = 'approval' AND policyd.time_of(next ->> 'asked') > soon THEN
        RAISE EXCEPTION 'a request cannot be of the future' USING ERRCODE = '42501';
    END IF;
END $$;

-- How much an agent puts into a group. Clients keep open tasks, escalations, and breakers in files of a limited size.
CREATE FUNCTION policyd.check_size(wanted text, wanted_kind text, operation text, body text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    size int := coalesce(octet_length(body), 0);
BEGIN
    IF wanted_kind IN ('approval', 'run', 'signal', 'breaker') AND size > 262144 THEN
        RAISE EXCEPTION 'a document of this kind has at most 256 KiB' USING ERRCODE = '54000';
    END IF;
    -- Small changes of known documents are not counted.
    IF wanted_kind NOT IN ('task', 'escalation', 'breaker') OR operation = 'UPDATE' AND size <= 16384 THEN
        RETURN;
    END IF;
    SELECT size + coalesce(sum(octet_length(it.body::text)), 0) INTO size FROM policyd.document AS it
        WHERE it.grp = wanted AND it.kind = wanted_kind AND it.body IS NOT NULL AND it.created_by = session_user
        AND (wanted_kind <> 'escalation' OR it.body ->> 'status' = 'open');
    IF size > (CASE wanted_kind WHEN 'breaker' THEN 524288 ELSE 4194304 END) THEN
        RAISE EXCEPTION 'this account has too many open documents of this kind' USING ERRCODE = '53400';
    END IF;
END $$;

-- An agent does not change what belongs to another account: its requests, runs, and claims.
CREATE FUNCTION policyd.check_owner() RETURNS trigger
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
BEGIN
    NEW.created_by := CASE WHEN known IS NULL THEN session_user ELSE OLD.created_by END;
    NEW.claimed_by := CASE WHEN claim_changes THEN session_user WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.claimed_by END;
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
        OR NOT is_own AND next -> 'ended' IS DISTINCT FROM known -> 'ended') THEN
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
        IF next -> 'ended' IS DISTINCT FROM known -> 'ended' AND (known -> 'ended' IS NOT NULL
            OR coalesce(next -> 'ended' ->> 'outcome', '') NOT IN ('closed', 'consumed')
            OR NOT is_own AND next -> 'ended' ->> 'outcome' = 'closed'
            OR coalesce((next ->> 'asks')::boolean, true) AND next -> 'ended' ->> 'outcome' <> 'closed') THEN
            RAISE EXCEPTION 'only a human answers a request' USING ERRCODE = '42501';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_owner BEFORE INSERT OR UPDATE ON policyd.document
    FOR EACH ROW EXECUTE FUNCTION policyd.check_owner();

-- Begins a change: locks the group until the end of the transaction, and records the operation. An account can repeat only
-- its own operations; those from before version 4 have no account.
CREATE FUNCTION policyd.begin_change(wanted text, operation text, wanted_kind text, wanted_name text)
    RETURNS TABLE (has_group boolean, is_applied boolean, body text, now_ms bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own text := format('%I/%s', session_user, operation);
BEGIN
    has_group := policyd.may_use(wanted);
    IF has_group THEN
        PERFORM FROM policyd.project_group WHERE project_group.name = wanted FOR UPDATE;
        has_group := FOUND;
    END IF;
    IF has_group THEN
        is_applied := EXISTS (SELECT FROM policyd.applied AS it WHERE it.grp = wanted AND it.id = operation);
        IF NOT is_applied THEN
            INSERT INTO policyd.applied (grp, id) VALUES (wanted, own) ON CONFLICT DO NOTHING;
            is_applied := NOT FOUND;
        END IF;
        SELECT it.body::text INTO body FROM policyd.document AS it
            WHERE it.grp = wanted AND it.kind = wanted_kind AND it.name = wanted_name;
    END IF;
    now_ms := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    RETURN NEXT;
END $$;

-- Saves a document; without a body, it is removed. Not `ON CONFLICT DO UPDATE`: that calls the triggers for a new document
-- first, and these reject what an agent may do to a known one.
CREATE FUNCTION policyd.save_document(wanted text, wanted_kind text, wanted_name text, new_body text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    next_version bigint;
    -- Without repeated keys, which readers could understand differently.
    next json := new_body::jsonb::json;
BEGIN
    IF NOT policyd.may_use(wanted) THEN
        RAISE EXCEPTION 'this account must not use the group' USING ERRCODE = '42501';
    END IF;
    UPDATE policyd.project_group SET version = version + 1 WHERE name = wanted RETURNING version INTO next_version;
    IF next_version IS NULL THEN
        RAISE EXCEPTION 'the group does not exist' USING ERRCODE = '42501';
    END IF;
    UPDATE policyd.document AS it SET version = next_version, body = next, updated_at = clock_timestamp()
        WHERE it.grp = wanted AND it.kind = wanted_kind AND it.name = wanted_name;
    IF NOT FOUND THEN
        INSERT INTO policyd.document (grp, kind, name, version, body)
            VALUES (wanted, wanted_kind, wanted_name, next_version, next);
    END IF;
    PERFORM pg_notify('policyd', wanted);
END $$;

-- Returns documents that changed after a version, oldest first: at most `rows_max`, and as many as have `bytes_max` bytes.
-- A document over the limit of one document has no body and `is_large`.
CREATE FUNCTION policyd.read_changes(wanted text, since bigint, rows_max int, bytes_max int)
    RETURNS TABLE (kind text, name text, version bigint, body text, is_large boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    total bigint := 0;
    size int;
    found record;
BEGIN
    IF NOT policyd.may_use(wanted) THEN
        RETURN;
    END IF;
    FOR found IN SELECT it.kind, it.name, it.version, it.body FROM policyd.document AS it
        WHERE it.grp = wanted AND it.version > since ORDER BY it.version LIMIT least(greatest(rows_max, 1), 1000) LOOP
        size := coalesce(octet_length(found.body::text), 0);
        is_large := size > 1048576;
        total := total + CASE WHEN is_large THEN 0 ELSE size END;
        EXIT WHEN total > least(greatest(bytes_max, 1048576), 16777216);
        kind := found.kind;
        name := found.name;
        version := found.version;
        body := CASE WHEN is_large THEN NULL ELSE found.body::text END;
        RETURN NEXT;
    END LOOP;
END $$;

-- Returns the version of a group, null if it is unknown to this account, and the time of the server.
CREATE FUNCTION policyd.read_group(wanted text) RETURNS TABLE (version bigint, now_ms bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT (SELECT it.version FROM policyd.project_group AS it WHERE it.name = wanted AND policyd.may_use(wanted)),
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

CREATE FUNCTION policyd.count_documents(wanted text) RETURNS TABLE (kind text, documents bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT it.kind, count(*) FROM policyd.document AS it
    WHERE it.grp = wanted AND it.body IS NOT NULL AND policyd.may_use(wanted) GROUP BY it.kind ORDER BY it.kind
$$;

-- Appends decisions. One that the server has stays as it is.
CREATE FUNCTION policyd.append_decisions(wanted text, ids text[], entries text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT policyd.may_use(wanted) OR NOT EXISTS (SELECT FROM policyd.project_group AS it WHERE it.name = wanted) THEN
        RAISE EXCEPTION 'this account must not use the group' USING ERRCODE = '42501';
    END IF;
    IF cardinality(ids) > 1000 OR cardinality(ids) <> cardinality(entries) THEN
        RAISE EXCEPTION 'at most 1,000 decisions are sent at once' USING ERRCODE = '54000';
    END IF;
    INSERT INTO policyd.decision (grp, id, entry, login)
        SELECT wanted, new.id, new.entry::json, session_user FROM unnest(ids, entries) AS new (id, entry)
        ON CONFLICT DO NOTHING;
END $$;

-- Returns decisions to humans, oldest first.
CREATE FUNCTION policyd.read_decisions(wanted text, since timestamptz, rows_max int)
    RETURNS TABLE (id text, at timestamptz, login name, entry json)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT it.id, it.at, it.login, it.entry FROM policyd.decision AS it
    WHERE it.grp = wanted AND it.at >= since AND policyd.may_use(wanted)
        AND pg_has_role(session_user, 'policyd_human', 'MEMBER')
    ORDER BY it.at, it.id LIMIT least(greatest(rows_max, 1), 10000)
$$;

-- A session chooses neither what names mean nor the zone of a time.
ALTER FUNCTION policyd.may_use(text) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION policyd.check_document() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION policyd.check_approval() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION policyd.check_signal() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION policyd.check_cooldown() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION policyd.check_document() SET timezone = 'UTC';
ALTER FUNCTION policyd.check_cooldown() SET timezone = 'UTC';

-- The functions belong to the owner of the tables, who can be another account than the one that migrates.
DO $$
DECLARE
    owner name := (SELECT tableowner FROM pg_tables WHERE schemaname = 'policyd' AND tablename = 'document');
    one regprocedure;
BEGIN
    FOR one IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'policyd'::regnamespace
        AND pg_get_userbyid(proowner) <> owner LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO %I', one, owner);
    END LOOP;
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA policyd FROM PUBLIC, policyd_agent, policyd_human;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA policyd FROM PUBLIC, policyd_agent, policyd_human;
-- A client of an earlier version reads here that it is too old.
GRANT SELECT ON policyd.migration TO policyd_agent, policyd_human;
GRANT EXECUTE ON FUNCTION policyd.begin_change(text, text, text, text), policyd.save_document(text, text, text, text),
    policyd.read_changes(text, bigint, int, int), policyd.read_group(text), policyd.count_documents(text),
    policyd.append_decisions(text, text[], text[]) TO policyd_agent, policyd_human;
GRANT EXECUTE ON FUNCTION policyd.read_decisions(text, timestamptz, int) TO policyd_human;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA policyd TO policyd_admin;
