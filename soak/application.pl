# What application.py does, in Perl, which has no transactions.

use strict;
use warnings;

use Parkade;

get '/constant' => 'Hola';

get '/sleep/{number}/{milliseconds}' => sub {
    my ($number, $milliseconds) = @_;
    return query("select $number as n from pg_sleep(${\($milliseconds / 1000)}) /* pk:$number */");
};

# The text is always the same, so it is prepared once; the log shows the number as a parameter.
get '/prepared/{number}/{milliseconds}' => sub {
    my ($number, $milliseconds) = @_;
    return query('select $1::bigint as n from pg_sleep($2)', $number + 0, $milliseconds / 1000)->one;
};

# Busy, not asleep.
get '/series/{number}/{count}' => sub {
    my ($number, $count) = @_;
    return query("select $number as n, count(*) from generate_series(1, $count) /* pk:$number */")->one;
};

get '/rows/{number}/{count}' => sub {
    my ($number, $count) = @_;
    return query("select $number as n, i, repeat('x', 100) as x from generate_series(1, $count) i /* pk:$number */");
};

get '/write/{number}/{milliseconds}' => sub {
    my ($number, $milliseconds) = @_;
    my $slow = "select $number from pg_sleep(${\($milliseconds / 1000)})";
    return query("insert into written $slow returning n /* pk:$number */")->one;
};

get '/then/{number}/{milliseconds}' => sub {
    my ($number, $milliseconds) = @_;
    my $text = "select $number as n from pg_sleep(${\($milliseconds / 1000)}) /* pk:$number */";
    return query($text)->then(\&told, $number);
};

sub told {
    my ($rows, $number) = @_;
    return { n => $number + 0, rows => [map { $_->{n} } @$rows] };
}

# The same number is requested by several clients.
get '/shared/{number}/{milliseconds}' => sub {
    my ($number, $milliseconds) = @_;
    my $text = "select $number as n from pg_sleep(${\($milliseconds / 1000)}) /* pk:$number */";
    return query($text)->one->shared("soak $number");
};

get '/late/{number}/{milliseconds}' => sub {
    my ($number, $milliseconds) = @_;
    return query("select $number from pg_sleep(10) /* pk:$number */")->deadline($milliseconds / 1000);
};

get '/wrong/{number}/{nothing}' => sub { my ($number) = @_; return query("select $number / 0 /* pk:$number */") };

1;
