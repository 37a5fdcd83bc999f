# What apps/jobs.py does, in Perl: jobs, good and bad, and a route that enqueues any of them.

use strict;
use warnings;

use FindBin ();
use POSIX   ();
use lib "$FindBin::Bin/lib";
use Gates;
use JobsRan;
use Parkade;
use Time::HiRes ();

queue 'single', concurrency => 1;
queue 'pair',   concurrency => 2;
queue 'rated',  rate        => 10;

jobs_at '/jobs';

# Jobs

job hidden => sub { my ($gate) = @_; hold($gate); return $gate }, public => 0;

job write       => sub { my ($line) = @_; note($line); return $line };
job write_laden => sub { my ($line) = @_; note($line); return };
job parent      => sub { my ($line, $count) = @_; enqueue write => "$line $_" for 0 .. $count - 1; return };

job wait_at => sub {
    my ($gate) = @_;
    note("begin $gate " . job->attempt);
    hold($gate);
    note("end $gate " . job->attempt);
    return $gate;
};
job poll_at => sub {
    my ($gate) = @_;
    note("begin $gate " . job->attempt);
    until (job->cancelled) {
        return $gate if -e "$ENV{GATES}/$gate";
        Time::HiRes::sleep(Gates::PAUSE);
    }
    note("cancelled $gate");
    return 'cancelled';
}, retries => 0;
job steps => sub {
    my ($gate) = @_;
    job->progress(0.25, 'a quarter');
    hold($gate);
    job->progress(undef, 'some more');
    hold("$gate-2");
    return { pages => 3 };
};
job note_time => sub { my ($line) = @_; note("$line " . monotonic()); return };
job work      => sub {
    my ($line, $seconds) = @_;
    note("begin $line");
    Time::HiRes::sleep($seconds);
    note("end $line");
    return;
};
job page         => sub { return html('<p>made by a job')->status(201) };
job page_to_keep => sub { return Parkade::Response->new(200, ['Cache-Control', 'max-age=60'], 'for a minute') };
job give      => sub { my ($value) = @_; return $value };
job give_many => sub { my ($count) = @_; return [map { [] } 1 .. $count] };

job wait_behind => sub { my ($line) = @_; return after(0.05)->then(\&write_behind, $line) };
job wait_long   => sub { my ($line) = @_; return after(3_600)->then(\&write_behind, $line) };
sub write_behind { my ($line) = @_; note($line); return "behind $line" }

job wait_for_word => sub {
    my ($line) = @_;
    note("begin $line");
    return channel('word')->next(timeout => 60)->then(\&hear_word, $line);
};
sub hear_word { my ($message, $line) = @_; note("end $line"); return }

job tell_behind => sub { return after(0.05)->then(\&told_behind, job->id) };
sub told_behind { my ($id) = @_; return [job->id eq $id ? 'same' : 'other', job->name, job->attempt, defined job->deadline ? 1 : 0] }

# Jobs that fail

job broken => sub { my ($line) = @_; note("$line " . job->attempt); die "it is broken\n" }, retries => 1;
job say_and_fail => sub { my ($text) = @_; die "$text\n" }, retries => 0;
job again => sub {
    my ($line, $failures) = @_;
    note("$line " . job->attempt);
    retry(0.01, 'not yet') if job->attempt <= $failures;
    return job->attempt;
}, retries => 3;
job again_in => sub {
    my ($line, $seconds) = @_;
    note("$line " . job->attempt);
    retry($seconds, 'not yet') if job->attempt == 1;
    return;
}, retries => 1;
job late => sub {
    my ($line) = @_;
    note("begin $line " . monotonic());
    Time::HiRes::sleep(Gates::PAUSE) until job->cancelled;
    note("cancelled $line " . monotonic());
    return;
}, retries => 0, deadline => 1.5;
job discarded => sub { my ($line) = @_; note("$line " . job->attempt); discard('nobody wants it') }, retries => 3;

# Attempts that end their worker, or keep it

sub noted_first { my ($line) = @_; note("$line " . job->attempt); return job->attempt == 1 }

job leave        => sub { my ($line) = @_; POSIX::_exit(3) if noted_first($line); return $line }, retries => 1;
job crash        => sub { my ($line) = @_; kill SEGV => $$ if noted_first($line); return $line }, retries => 1;
job crash_always => sub { my ($line) = @_; noted_first($line); POSIX::_exit(3) }, retries => 1;
job loop         => sub { my ($line) = @_; if (noted_first($line)) { 1 while 1 } return $line }, retries => 1, deadline => 0.3;
job oversleep    => sub { my ($line) = @_; if (noted_first($line)) { sleep 3_600 while 1 } return $line }, retries => 1, deadline => 0.3;
job for_ever     => sub { my ($number) = @_; enqueue for_ever => $number + 1; return };
job unkeepable   => sub { return \*STDOUT }, retries => 0;

# Requests

get '/hola/{name}' => sub { my ($name) = @_; return "Hola $name" };
get '/hold/{gate}' => sub { my ($gate) = @_; hold($gate); return $gate };

sub asked { my $asked = request->json; return ($asked, map { enqueue $asked->{options} // {}, $asked->{job}, @{ $asked->{args} || [] } } 1 .. $asked->{count} // 1) }

post '/enqueue'  => sub { my (undef, @jobs) = asked(); return [map { $_->id } @jobs] };
post '/returned' => sub { my ($asked, $job) = asked(); return $job->result(timeout => $asked->{timeout}) };
post '/then'     => sub { my ($asked, $job) = asked(); return $job->result(timeout => $asked->{timeout})->then(\&tell, 'got') };
sub tell { my ($result, $word) = @_; return [$word, $result] }

sub in_pieces { my (@pieces) = @_; return sub { my $next = shift @pieces; return $next && $next->() } }

post '/streamed'        => sub { enqueue write => request->body; return in_pieces(sub { 'one' }, sub { 'two' }) };
post '/streamed-before' => sub {
    my $body = request->body;
    return in_pieces(sub { 'one' }, sub { enqueue write => $body; 'two' });
};
post '/before-a-wait'        => sub { enqueue write => request->body; return after 0, 'waited' };
post '/before-an-error'      => sub { enqueue write => request->body; die "behind the job\n" };
post '/unserialisable'       => sub { enqueue write => \*STDOUT; return };
post '/oversized'            => sub { enqueue write => 'x' x 600_000; return };
post '/stored-and-oversized' => sub { enqueue write => request->body; enqueue write => 'x' x 600_000; return };

1;
