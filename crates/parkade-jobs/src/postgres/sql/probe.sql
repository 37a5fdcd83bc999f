SELECT count(*) > 0 AS is_there,
       coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')), false) AS is_usable
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'parkade' AND c.relname = 'boots'
   -- Tables of an older version are not those of this server's jobs, and do not have the columns that it would use.
   AND EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class b ON b.oid = a.attrelid
                WHERE b.relnamespace = n.oid AND b.relname = 'bodies' AND a.attname = 'traceparent')
