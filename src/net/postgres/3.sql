-- Version 3: an agent ends no cooldown early. It can close a breaker only by reports of trial calls after the cooldown.

CREATE FUNCTION policyd.check_cooldown() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    until timestamptz := (OLD.body ->> 'cooldown_until')::timestamptz;
    next timestamptz := (NEW.body ->> 'cooldown_until')::timestamptz;
    -- Without an end, a forced breaker stays open until a human ends that.
    is_over boolean := coalesce(until <= clock_timestamp(), OLD.body ->> 'forced' IS NULL);
BEGIN
    IF NEW.kind <> 'breaker' OR OLD.body ->> 'state' IS DISTINCT FROM 'OPEN' OR is_over
        OR pg_has_role(session_user, 'policyd_human', 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF NEW.body ->> 'state' IS DISTINCT FROM 'OPEN'
        OR next IS DISTINCT FROM until AND NOT coalesce(next > until, false) THEN
        RAISE EXCEPTION 'only a human ends a cooldown early' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
-- Triggers run in the order of their names: `check_document` refuses a reset before.
CREATE TRIGGER check_document_cooldown BEFORE UPDATE ON policyd.document
    FOR EACH ROW EXECUTE FUNCTION policyd.check_cooldown();
