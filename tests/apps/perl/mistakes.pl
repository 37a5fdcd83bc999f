# What no core takes, as an application gives it: each is an exception, and none of them ends the worker.

use strict;
use warnings;

use Parkade;

my ($infinity, $nan) = (9**9**9, -sin 9**9**9);

sub publish { my (@message) = @_; channel('news')->publish(@message); return 'published' }
sub news    { return channel('news')->next(timeout => 0.01) }
sub shown   { return 'shown' }

my %mistakes = (
    delay         => sub { enqueue { delay => -1 }, 'works' },
    infinite      => sub { enqueue { delay => $infinity }, 'works' },
    at            => sub { enqueue { at => $nan }, 'works' },
    both          => sub { enqueue { at => 1, delay => 1 }, 'works' },
    priority      => sub { enqueue { priority => 1_001 }, 'works' },
    fraction      => sub { enqueue { priority => 1.5 }, 'works' },
    queue         => sub { enqueue { queue => '' }, 'works' },
    key           => sub { enqueue { key => 'x' x 201 }, 'works' },
    job           => sub { enqueue 'x' x 201 },
    retry         => sub { (enqueue retries => -5)->result(timeout => 10) },
    retry_nan     => sub { (enqueue retries => 'nan')->result(timeout => 10) },
    retry_text    => sub { (enqueue retries => 0, 'x' x 300_000)->result(timeout => 10) },
    result        => sub { (enqueue 'works')->result(timeout => -1) },
    timer         => sub { after -1 },
    timer_answer  => sub { after 0, 'x' x 100_000 },
    timeout       => sub { channel('news')->next(timeout => $infinity) },
    history       => sub { channel('news')->history(count => 1.5) },
    deadline      => sub { query('select 1')->deadline($nan) },
    shared        => sub { query('select 1')->shared('') },
    odd           => sub { news()->headers('X-A') },
    reference     => sub { news()->headers('X-A' => [1]) },
    name          => sub { news()->headers('X A' => 1) },
    line_end      => sub { news()->headers('X-A' => "a\nb") },
    odd_response  => sub { [200, ['X-A'], ['text']] },
    content_type  => sub { publish('x', content_type => 'x' x 1_025) },
    event         => sub { publish('x', event => "a\n") },
    nan           => sub { return { price => $nan } },
    nan_message   => sub { publish({ price => $infinity }) },
    nan_document  => sub { query('select ?1', { price => $nan }) },
    cycle         => sub { my $cycle = []; push @$cycle, $cycle; query('select ?1', $cycle) },
    statement     => sub { query('') },
    parameter     => sub { query('select ?1', sub { 1 }) },
    state         => sub { after(0)->then('shown', sub { 1 }) },
    argument      => sub { enqueue works => sub { 1 } },
    returned      => sub { (enqueue 'returns_code')->result(timeout => 10) },
    option        => sub { publish('x', foo => 1) },
);

job works => sub { return 'well' };
job retries => sub { my ($after, $more) = @_; retry($after, 'later' . ($more // '')) }, retries => 0;

job returns_code => sub { return [sub { 1 }] }, retries => 0;

get '/wrong' => sub { return [sort keys %mistakes] };
get '/wrong/{what}' => sub { my ($what) = @_; return $mistakes{$what}->() };
get '/right' => sub { after(0, 'text')->headers('X-Number' => 5, 'X-Nothing' => undef) };

1;
