-- Version 2: requests to let blocked tool calls pass, and signals. Only a human answers. A request cannot be changed.

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
-- Only a human answers a request, and only a human interrupts runs of other hosts.
CREATE FUNCTION policyd.check_signal() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    known jsonb := CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.body::jsonb END;
    next jsonb := NEW.body::jsonb;
    changeable text[] := ARRAY['claim', 'ended'];
BEGIN
    IF NEW.kind <> 'signal' OR pg_has_role(session_user, 'policyd_human', 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF next IS NULL OR known IS NOT NULL AND known - changeable IS DISTINCT FROM next - changeable THEN
        RAISE EXCEPTION 'a signal cannot be changed' USING ERRCODE = '42501';
    END IF;
    IF known IS NULL AND next ->> 'interrupts' <> '' THEN
        RAISE EXCEPTION 'only a human interrupts runs of other hosts' USING ERRCODE = '42501';
    END IF;
    -- The host of a request closes it. `asks` is what its host says; whoever sent the document first can say no.
    IF next -> 'ended' IS DISTINCT FROM known -> 'ended' AND (
        next -> 'ended' ->> 'outcome' NOT IN ('closed', 'consumed')
        OR (next ->> 'asks')::boolean AND next -> 'ended' ->> 'outcome' <> 'closed'
    ) THEN
        RAISE EXCEPTION 'only a human answers a request' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER check_signal BEFORE INSERT OR UPDATE ON policyd.document
    FOR EACH ROW EXECUTE FUNCTION policyd.check_signal();

CREATE TRIGGER check_approval BEFORE INSERT OR UPDATE ON policyd.document
    FOR EACH ROW EXECUTE FUNCTION policyd.check_approval();
