# What is told of an exception: its text, and the stack of the application's code, with nothing of Parkade's.

use strict;
use warnings;

use Test::More;
use Parkade::Trace ();

my $stream = 1;
Parkade::Trace::begin(stream => sub { $stream });
Parkade::Trace::settle();

# The application

package Shop;

sub total   { return price(@_) }
sub price   { return find($_[0]) }
sub find    { die @_ }
sub divide  { return 1 / $_[0] }
sub caught  { return eval { find(@_) } // 'none' }
sub again   { eval { find(@_); 1 } or die $@; return }
sub harmless { eval { find('harmless') }; return find('at last') }

package Shop::Plain;

sub new     { my ($class, $message) = @_; return bless { message => $message }, $class }
sub message { return $_[0]{message} }

package Shop::Texted;
use parent -norequire, 'Shop::Plain';
use overload '""' => sub { "texted: $_[0]{message}" }, fallback => 1;

package Shop::Frame;

sub new        { my ($class, @call) = @_; return bless [@call], $class }
sub package    { return $_[0][0] }
sub filename   { return $_[0][1] }
sub line       { return $_[0][2] }
sub subroutine { return $_[0][3] }

package Shop::Frames;
sub new    { my ($class, @frames) = @_; return bless [map { Shop::Frame->new(@$_) } @frames], $class }
sub frames { return @{ $_[0] } }

package Shop::Traced;
use parent -norequire, 'Shop::Plain';
sub trace { return Shop::Frames->new(['Own', 'own.pm', 7, 'Own::throw'], ['main', 'app.psgi', 3, 'Own::sell']) }

package Shop::Mojo;
use parent -norequire, 'Shop::Plain';
sub frames { return [['Mine', 'mine.pm', 5, 'Mine::throw'], ['main', 'app.pl', 2, 'Mine::sell']] }
sub trace  { die 'which would replace the frames' }

# As Parkade calls it
package Parkade::Test;

sub trace_of {
    my ($code, @arguments) = @_;
    return Parkade::Trace->of($@) if !eval { $code->(@arguments); 1 };
    return;
}

package main;

my $file = __FILE__;

sub functions { return [grep { defined } map { $_->{function} } @{ $_[0]->frames }] }

sub traced { return Parkade::Test::trace_of(@_) }

my $trace = traced(\&Shop::total, "no such lot\n");
is($trace->text, 'no such lot', 'the text');
is_deeply(functions($trace), [qw(Shop::find Shop::price Shop::total main::traced)], 'the stack');
like($trace->whole, qr/\Ano such lot\nStack \(most recent call first\):\n  \Q$file\E line \d+, in Shop::find\n/, 'both');
unlike($trace->whole, qr/Parkade/, 'and nothing else');

is_deeply(functions(traced(\&Shop::divide, 0)), [qw(Shop::divide main::traced)], 'what Perl itself throws');
is_deeply(functions(traced(sub { Shop::harmless() })), [qw(Shop::find Shop::harmless main::__ANON__ main::traced)], 'not that of an exception that was caught');
is_deeply(functions(traced(\&Shop::again, "again\n")), [qw(Shop::again main::traced)], 'of what is thrown again');

# An exception that an application catches is not looked at further than there.
is(Shop::caught("x\n"), 'none', 'it is caught');
is_deeply(Parkade::Trace->of("x\n")->frames, [], 'and nothing is noted of it');

# Nor is one of another request that has the same text.
traced(sub { eval { Shop::total("same\n") }; 1 });
$stream = 2;
is_deeply(functions(traced(sub { die "same\n" })), [qw(main::__ANON__ main::traced)], 'each request has its own');

# What is thrown
is(traced(\&Shop::find, Shop::Plain->new('sold'))->text, 'Shop::Plain: sold', 'an object with a message');
is(traced(\&Shop::find, Shop::Texted->new('sold'))->text, 'texted: sold', 'an object that is text');
is(traced(\&Shop::find, { code => 7, why => 'sold' })->text, q({'code' => 7,'why' => 'sold'}), 'data');
my $object = Shop::Plain->new('sold');
is_deeply(functions(traced(\&Shop::total, $object)), [qw(Shop::find Shop::price Shop::total main::traced)], 'the stack of an object');
{
    my $is_gone;
    { no warnings 'once'; *Shop::Plain::DESTROY = sub { $is_gone++ } }
    traced(\&Shop::caught, Shop::Plain->new('sold'));
    traced(\&Shop::total, Shop::Plain->new('sold'));
    is($is_gone, 2, 'nobody keeps an exception');
    undef *Shop::Plain::DESTROY;
}

is(traced(\&Shop::find, Shop::Traced->new('x'))->stack, "  own.pm line 7\n  app.psgi line 3\n" =~ s/7\n/7, in Own::sell\n/r, 'an exception with a trace');
is(traced(\&Shop::find, Shop::Mojo->new('x'))->stack, "  mine.pm line 5, in Mine::sell\n  app.pl line 2\n", 'one with frames');

require Carp;
my $confessed = traced(sub { Carp::confess('with a stack') });
is_deeply($confessed->frames, [], 'a text with a stack needs no other');
like($confessed->text, qr/\tmain::__ANON__\(\)/, 'it is shown');
unlike($confessed->text, qr/Trace\.pm/, 'without what is Parkade\'s');

# The application's own handler
{
    my @heard;
    local $SIG{__DIE__} = sub { push @heard, [$_[0], (caller 2)[3]]; die "more: $_[0]" };
    Parkade::Trace::settle();
    my $told = traced(\&Shop::find, "x\n");
    is_deeply(\@heard, [["x\n", 'Shop::find']], 'it is called, once');
    is($told->text, 'more: x', 'and may throw something else');
}
{
    local $SIG{__DIE__} = 'main::by_name';
    our $named;
    sub by_name { our $named = $_[0]; return }
    Parkade::Trace::settle();
    is_deeply(functions(traced(\&Shop::find, "x\n")), [qw(Shop::find main::traced)], 'the stack is noted, too');
    is($named, "x\n", 'a handler may be a name');
}
{
    local $SIG{__DIE__};
    Parkade::Trace::settle();
    is_deeply(functions(traced(\&Shop::find, "x\n")), [qw(Shop::find main::traced)], 'a handler that was removed is put back');
}
{
    my $heard = 0;
    local $SIG{__DIE__} = sub { $heard++ };
    is(traced(\&Shop::find, "x\n")->text, 'x', 'a handler for some code alone');
    is($heard, 1, 'replaces that of Parkade');
}

# For developers
Parkade::Trace::begin(dev => 1);
Parkade::Trace::settle();
my $shown = traced(\&Shop::total, "it's\n", undef, 42, [1], 'x' x 1_000);
is_deeply([@{ $shown->frames->[2]{arguments} }[0 .. 2]], [q('it\'s) . "\n'", 'undef', '42'], 'arguments');
like($shown->frames->[2]{arguments}[3], qr/\AARRAY\(0x/, 'a reference');
ok(length $shown->frames->[2]{arguments}[4] < 400, 'a long text in part');
is_deeply(functions(traced(\&Shop::again, "again\n")), [qw(Shop::find Shop::again main::traced)], 'where it was thrown first');

done_testing;
