# The application at /perl, for PSGI.

use strict;
use warnings;

use JSON::PP ();
use Parkade ':waits';

job count => sub { my ($word) = @_; return length $word };

sub {
    my ($env) = @_;
    my $path = $env->{PATH_INFO};
    return park(channel('news')->next(timeout => 20)) if $path eq '/news';
    if ($path eq '/publish') {
        channel('news')->publish('from Perl');
        return [200, ['Content-Type', 'text/plain'], ['published']];
    }
    return park((enqueue shout => 'hey')->result(timeout => 20)) if $path eq '/shout';
    return park((enqueue count => 'camel')->result(timeout => 20)) if $path eq '/count';
    my %told = map { $_ => $env->{$_} } qw(SCRIPT_NAME PATH_INFO QUERY_STRING);
    return [200, ['Content-Type', 'application/json'], [JSON::PP->new->encode({ %told, by => 'perl', pid => $$ + 0 })]];
};
