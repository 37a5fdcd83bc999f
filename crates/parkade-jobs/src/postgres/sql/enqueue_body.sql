
-- Stores one job in the transaction of the caller, and returns whether it did. It fails for no reason that is known beforehand, because a
-- failure would end that transaction. Parameters: the instance of a server whose jobs are meant (NULL: whichever are here); id, name,
-- queue, priority, due (in ms since 1970; NULL: at once), arguments, request_id, traceparent. It has no key.
DECLARE
    is_stored bool;
BEGIN
    IF current_setting('transaction_read_only')::bool OR EXISTS (
        SELECT FROM unnest(ARRAY['parkade.bodies', 'parkade.ready', 'parkade.scheduled', 'parkade.keys', 'parkade.boots']) used
         WHERE NOT (has_table_privilege(used, 'SELECT') AND has_table_privilege(used, 'INSERT'))
    ) THEN
        RETURN false;
    END IF;
    WITH statement
    SELECT (SELECT count(*) FROM rung) > 0 INTO is_stored;
    RETURN is_stored;
END
