# An application of Parkade's own interface: the scenarios, in plain Perl.

use strict;
use warnings;
use utf8;

use Parkade;

get '/hola/{name}' => sub { my ($name) = @_; return "hola $name" };
get '/double/{number:int}' => sub { return { double => 2 * param('number') } };
get '/echo' => sub { after 0.2, 'You said: ' . param('field') };
post '/form' => sub { return join ',', param('a'), request->params('b') };
post '/json' => sub { return request->json };
get '/html' => sub { html('<p>ñ</p>')->status(201)->header('X-A', 'b') };
get '/psgi' => sub { return [202, ['X-A', 'b'], ['psgi']] };
get '/nothing' => sub { return };
get '/away' => sub { redirect '/hola/you' };
get '/raises' => sub { die "at once\n" };
get '/exits' => sub { exit 3 };
get '/exits/after' => sub { after(0.01)->then(\&exits) };
get '/exits/piece' => sub { my $count = 0; return sub { exit if $count++; return 'one ' } };
sub exits { exit }
get '/large' => sub { after(1, 'x' x 2_000_000) };
get '/unnamed' => sub { channel('')->next };
get '/misnamed' => sub { channel('lots')->socket({ subprotocols => ['chat v2'] }, sub { }) };
get '/anonymous' => sub { after(1)->then(sub { 'never' }) };

get '/lots/{lot}' => sub { my ($lot) = @_; channel("auction/$lot")->next(timeout => 0.3) };
get '/lots/{lot}/stream' => sub { my ($lot) = @_; channel("auction/$lot")->stream };
get '/lots/{lot}/shown' => sub { my ($lot) = @_; channel("auction/$lot")->next(timeout => 20)->then(\&shown, lot => $lot) };
get '/lots/{lot}/all' => sub { my ($lot) = @_; channel("auction/$lot")->history->then('listed') };
post '/lots/{lot}' => sub {
    my ($lot) = @_;
    channel("auction/$lot")->publish({ bid => param('bid') + 0 });
    return { ok => \1 };
};

sub shown { my ($message, %more) = @_; return "$more{lot}: " . $message->json->{bid} }
sub listed { my ($messages) = @_; return [map { $_->json->{bid} } @$messages] }

get '/sales' => sub { query('select 7 as price, \'Straße\' as street union select ?1, ?2', param('price'), 'a') };
get '/page' => sub { query('select 7 as price')->then(\&page, title => 'Sälés') };
get '/one' => sub { query('select 7 as price')->one->headers('X-A', 'b') };
# Half a number, as a parameter of that type.
get '/half/{type}' => sub { my ($type) = @_; query("select \$1::$type as half", param('of') / 2)->value };
get '/halves/{type}' => sub { my ($type) = @_; query("select \$1::$type\[] as halves", [map { $_ / 2 } 10, 7])->value };
get '/wrong' => sub { query('select nothing')->then(\&page) };
get '/twice' => sub { query('select 1 as price')->then(\&again) };

sub page { my ($rows, %page) = @_; return "$page{title}: $rows->[0]{price}" }
sub again { return after(0.05)->then('main::done', 'again', [1, { a => undef }]) }
sub done { my (@state) = @_; return { state => \@state } }

my @lines;
job write_log => sub {
    my ($line, %more) = @_;
    print "wrote $line\n";
    return { length => length $line, %more };
}, retries => 5;
job exits => sub { exit }, retries => 0;
job fails => sub { discard('of no use') };
job flaky => sub {
    my ($file) = @_;
    return 'well' if -e $file;
    open my $made, '>', $file or die $!;
    retry(0, 'not yet');
};
job waits => sub { return after(0.05)->then(\&waited, 'so long') };
sub waited { my ($text) = @_; return $text }

post '/enqueue/{name}' => sub {
    my ($name) = @_;
    my $job = enqueue $name => request->params('a');
    return $job->result(timeout => 10);
};
post '/later' => sub { enqueue({ delay => 0.05 }, write_log => 'later')->id };

1;
