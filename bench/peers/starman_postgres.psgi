# The preforking Perl server: a connection for each worker, held by it while its statement runs.
use strict;
use warnings;
use DBI;

my %statements = (
    '/one'  => 'select 1',
    '/slow' => 'select 1 from pg_sleep(2) /* bench */',
);
my $database;

sub {
    my $sql = $statements{shift->{PATH_INFO}};
    # Behind the fork: a connection cannot be shared.
    $database ||= DBI->connect($ENV{DATABASE_DSN}, undef, undef, { RaiseError => 1 });
    my $body = 'Hola';
    if ($sql) {
        my $statement = $database->prepare_cached($sql);
        ($body) = $database->selectrow_array($statement);
    }
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $body], [$body]];
};
