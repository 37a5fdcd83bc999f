package Parkade;

use 5.026;
use strict;
use warnings;

use Carp              ();
use Exporter          qw(import);
use Parkade::App      ();
use Parkade::Channel  ();
use Parkade::Checks   ();
use Parkade::Job      ();
use Parkade::Native   ();
use Parkade::Parked   ();
use Parkade::Query    ();
use Parkade::Response ();
use Parkade::Wait     ();

our $VERSION = '0.1.0';

our @EXPORT = qw(get post put patch del any websocket close_socket param request html redirect after channel query job queue jobs_at enqueue retry discard);
our @EXPORT_OK   = qw(park);
our %EXPORT_TAGS = (waits => [qw(after channel query job queue enqueue retry discard park)]);

sub get   { Parkade::App::add_route(['GET'],    @_); return }
sub post  { Parkade::App::add_route(['POST'],   @_); return }
sub put   { Parkade::App::add_route(['PUT'],    @_); return }
sub patch { Parkade::App::add_route(['PATCH'],  @_); return }
sub del   { Parkade::App::add_route(['DELETE'], @_); return }
sub any   { my ($methods, @rest) = @_; Parkade::App::add_route($methods, @rest); return }

sub websocket { my ($path, $code, %options) = @_; Parkade::App::add_route(['GET'], $path, $code, %options, websocket => 1); return }

sub close_socket { my ($code, $reason) = @_; return Parkade::Close->new($code, $reason) }

sub request {
    return $Parkade::Native::request // Carp::croak('there is no request here');
}

sub param { my ($name) = @_; return scalar request()->param($name) }

sub html { my ($text) = @_; return Parkade::Response->html($text) }

sub redirect {
    my ($location, $status) = @_;
    return Parkade::Response->new($status || 303, [location => $location]);
}

sub after {
    my ($seconds, $answer) = @_;
    return Parkade::Wait->new(timer => Parkade::Checks::seconds('seconds', $seconds))->answer_with($answer);
}

sub channel {
    my ($name, %options) = @_;
    Parkade::App::add_channel($name, %options) if %options;
    return Parkade::Channel->new($name);
}

sub query   { return Parkade::Query->new(@_) }

sub job {
    return $Parkade::Native::job // Carp::croak('no job is running here') if !@_;
    Parkade::App::add_job(@_);
    return;
}

sub queue   { Parkade::App::add_queue(@_);     return }
sub jobs_at { Parkade::App::add_jobs_path(@_); return }

sub enqueue {
    my $options = ref $_[0] eq 'HASH' ? shift : {};
    return Parkade::Job->enqueue($options, @_);
}

sub retry {
    my ($seconds, $text) = @_;
    my $after = defined $seconds ? Parkade::Checks::seconds('seconds', $seconds) : undef;
    die Parkade::Job::Failure->new(reason => 'retry', after => $after, text => $text // 'again');
}

sub discard {
    my ($text) = @_;
    die Parkade::Job::Failure->new(reason => 'discard', text => $text // 'discarded');
}

sub park { my ($wait) = @_; return Parkade::Parked::response($wait) }

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade - plain Perl that waits, on the application server Parkade

=head1 SYNOPSIS

    use Parkade;

    get '/echo' => sub { after 2, 'You said: ' . param('field') };

    get  '/lots/{lot}' => sub { my ($lot) = @_; channel("auction/$lot")->next(timeout => 30) };
    post '/lots/{lot}' => sub {
        my ($lot) = @_;
        channel("auction/$lot")->publish({ bid => param('bid') });
        return { ok => 1 };
    };

    get '/sales' => sub { query('select * from sales')->then(\&render, title => 'Sales') };
    sub render { my ($rows, %page) = @_; return html("<h1>$page{title}</h1>" . @$rows) }

    job write_log => sub { my ($line) = @_; ... }, retries => 5;
    post '/visits' => sub { enqueue write_log => param('line'); return 'noted' };

    1;

Started with C<parkade serve app.pl>.

=head1 DESCRIPTION

Parkade owns the connections of clients and does the waiting; worker processes run your code. A handler returns its answer, or
says what the answer waits for and returns: the worker is free for the next request. When the client leaves, what was started
for it is cancelled, down to the statement in the database.

Applications of PSGI run unchanged: see L<Parkade::PSGI>. They can use all of this with C<use Parkade ':waits'>, and return
C<park(...)>.

The loop that serves usual requests of PSGI is in C if it was built: see L<Parkade::Compiled>.

=head1 FUNCTIONS

=head2 get, post, put, patch, del ($path => $code, %options), any(\@methods, $path => $code, %options)

A route. A segment of the path may be a parameter: C<{name}>, C<{name:int}>, C<{name:float}>, C<{name:uuid}>, and at the end
C<{name:path}>. The code gets the parameters in their order. Options: C<deadline> (seconds), C<name>.

It returns text (as C<text/plain>), C<html(...)>, a hash or an array (as JSON), C<undef> (204), a response of PSGI, a wait, or
a code reference: a body in pieces, which it returns one by one, and then C<undef>.

Text is sent in UTF-8. Strings that Perl keeps as bytes, such as literals without C<use utf8>, are sent as they are.

Instead of code, a route may have a constant answer, which is text or C<html(...)>, or a wait. Then the core answers, without
a worker.

=head2 websocket($path => $code, %options), close_socket($code, $reason)

A route for WebSockets. Its code is called once, when a client asks for one, and returns C<channel(...)-E<gt>socket(...)>: the core
then holds the WebSocket, and no worker is busy with it (see L<Parkade::Channel>). Any other answer denies it. Other requests for
the path get 426. Options as above.

    websocket '/rooms/{room}' => sub { my ($room) = @_; channel("rooms/$room")->socket(\&said, $room) };
    sub said { my ($message, $room) = @_; channel("rooms/$room")->publish($message); return }

A sub that is called for a client's message returns C<close_socket(4001, 'why')> to close the WebSocket: with 3000 to 4999, which
are yours, or a code of RFC 6455, and at most 123 bytes.

=head2 param($name), request

A parameter of the path, the query or a form; the L<Parkade::Request>.

=head2 html($text), redirect($location, $status)

Answers; see L<Parkade::Response>.

=head2 after($seconds, $answer)

A wait for a timer, see L<Parkade::Wait>.

=head2 channel($name)

A L<Parkade::Channel>: C<next>, C<stream>, C<socket>, C<history>, C<publish>.

With options, while the application loads: how much of these channels is kept. C<channel('news/*', count =E<gt> 100)>; the name
may end in C<*>. Options: C<count>, C<bytes>, C<age> (seconds).

=head2 query($sql, @bind)

A L<Parkade::Query>.

=head2 job($name => $code, %options)

Declares a job: work that runs after the response, also if this process dies. Options: C<retries> (3), C<queue>, C<deadline>
(seconds), C<priority>, C<public> (0: clients do not find it where C<jobs_at> says). An attempt that dies is made again later.

=head2 job

In a job: the attempt that is running, a L<Parkade::Attempt>. C<job-E<gt>attempt> is 1 the first time; C<job-E<gt>cancelled>
says whether it should end, and C<job-E<gt>progress(0.5, 'half of it')> reports how far it is.

=head2 queue($name, %options)

Limits a queue of jobs: C<concurrency>, how many of its jobs run at a time, and C<rate>, how many begin in a second.

=head2 jobs_at($path)

Gives jobs an address: C<jobs_at '/jobs'> lets anyone who knows the id of a job see its state, wait for its result, follow it
or cancel it at C</jobs/ID>.

=head2 enqueue($name => @arguments), enqueue(\%options, $name => @arguments)

Enqueues a job; see L<Parkade::Job>.

=head2 retry($seconds, $text), discard($text)

In a job: this attempt has failed, and the next is made after that many seconds (a finite number of 0 or more; C<undef>: as after
any other failure), or never. The text is stored with the job.

=head2 park($wait)

A response of PSGI that stands for a wait: return it instead of a response. Headers and cookies that middleware adds are kept.

=cut
