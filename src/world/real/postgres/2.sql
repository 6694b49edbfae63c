-- Version 2: requests to let blocked tool calls pass. Only a human answers, and nobody changes what was asked.

CREATE FUNCTION policyd.check_approval() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    known jsonb := CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.body::jsonb END;
    next jsonb := NEW.body::jsonb;
    -- The host of the call marks an answer as taken, and opens a request again after that.
    known_answer jsonb := (known -> 'answer') - 'taken';
    next_answer jsonb := (next -> 'answer') - 'taken';
    changeable text[] := ARRAY['answer', 'asked', 'withdrawn'];
BEGIN
    IF NEW.kind <> 'approval' THEN
        RETURN NEW;
    END IF;
    IF known IS NOT NULL AND next IS NOT NULL
        AND known - changeable IS DISTINCT FROM next - changeable THEN
        RAISE EXCEPTION 'a request to let a call pass cannot be changed' USING ERRCODE = '42501';
    END IF;
    IF pg_has_role(session_user, 'policyd_human', 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF next IS NULL OR next_answer IS NOT NULL AND next_answer IS DISTINCT FROM known_answer THEN
        RAISE EXCEPTION 'only a human answers a request to let a call pass' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_approval BEFORE INSERT OR UPDATE ON policyd.document
    FOR EACH ROW EXECUTE FUNCTION policyd.check_approval();
