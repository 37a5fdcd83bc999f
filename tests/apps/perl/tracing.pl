# What apps/tracing.py does, in Perl.

use strict;
use warnings;

use Parkade;
use Time::HiRes ();

sub told { return { request_id => job->request_id, traceparent => job->traceparent } }

job told       => \&told;
job told_later => sub { return after(0)->then(\&told) };
job enqueues   => sub { return enqueue('told')->id };
job logs       => sub { warn "a job has something to say\n"; return };
job fails      => sub { die "it cannot\n" }, retries => 0;

post '/jobs/{name}' => sub { my ($name) = @_; return enqueue($name)->id };
get '/hola'         => sub { return 'hola' };
get '/pieces'       => sub {
    my @pieces = (sub { 'one' }, sub { enqueue 'told'; 'two' });
    return sub { my $next = shift @pieces; return $next && $next->() };
};

use constant {
    SEEN     => 'select query from pg_stat_activity where pid = pg_backend_pid()',
    PREPARED => q{select count(*) from pg_prepared_statements where statement like 'select query from%'},
};

get '/seen/{name}' => sub { my ($name) = @_; return query(SEEN . q{ and $1 <> ''}, $name)->value };
get '/prepared'    => sub { return query(PREPARED)->value };
job sees => sub { return query(SEEN)->value->then(\&saw) };
sub saw { my ($text) = @_; return $text }

get '/broken'      => sub { return query('selct 1') };
get '/traceparent' => sub { return request->header('traceparent') // 'None' };
get '/slow'        => sub { Time::HiRes::sleep(0.3); return 'slow' };

1;
