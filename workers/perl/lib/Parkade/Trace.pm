package Parkade::Trace;

use strict;
use warnings;

use overload     ();
use Scalar::Util qw(blessed refaddr weaken);

use constant {
    FRAMES_MAX   => 100,      # Then: the outer ones are left out.
    VALUE_MAX    => 300,      # characters of an argument. Then: the beginning is kept
    DATA_MAX     => 1_000,    # the same of data that is thrown
    HEADING      => 'Stack (most recent call first):',
};

my $folder = __FILE__ =~ s{Trace\.pm\z}{}r;

my $of_application;    # its own handler for exceptions, if it had one when it was loaded
my $is_whole = 1;      # exceptions that the application catches itself are noted, too: only while it loads
my $shows;             # also the arguments of subs
my $stream = sub { 0 };
my $last;              # the exception that was thrown last, and the calls that led to it

# From here on, exceptions are noted where they are thrown: Perl forgets the stack before anybody catches them.
sub begin {
    my (%settings) = @_;
    $shows  = $settings{dev};
    $stream = $settings{stream} if $settings{stream};
    $SIG{__DIE__} = \&_thrown;
    return;
}

# The application has loaded. Its own handler is called by this one.
sub settle {
    my $handler = $SIG{__DIE__};
    $is_whole = $shows;
    return if ref $handler && $handler == \&_thrown;
    no strict 'refs';
    $of_application = ref $handler ? $handler : defined $handler && defined &$handler ? \&$handler : undef;
    $SIG{__DIE__} = \&_thrown;
    return;
}

sub _thrown {
    # The code of a coroutine is in an eval of Future::AsyncAwait.
    _note($_[0]) if $is_whole || $INC{'Future/AsyncAwait.pm'} || !_is_caught();
    # Not `goto`: as long as this sub runs, Perl calls no handler for what the application's own one throws.
    $of_application->(@_) if $of_application;
    return;
}

# Whether the application catches it itself: by the nearest eval, so that this is cheap.
sub _is_caught {
    my $depth = 2;
    while (my ($package, $function, $is_file) = (caller $depth++)[0, 3, 7]) {
        return $package !~ /\AParkade::/ if $function eq '(eval)' && !$is_file;
    }
    return 0;
}

sub _note {
    my ($error) = @_;
    my @calls;
    for (my $depth = 1; @calls < FRAMES_MAX; $depth++) {
        my @call;
        if ($shows) {
            package DB;
            @DB::args = ();
            @call = caller $depth or last;
            $call[8] = $call[4] && $depth > 1 ? [map { Parkade::Trace::_shown($_) } @DB::args] : undef;
        }
        else {
            @call = caller $depth or last;
        }
        push @calls, [@call[0 .. 3, 6 .. 8]];
    }
    my $of = $stream->();
    # Thrown again, perhaps by what has caught it, and perhaps with more text.
    return if $last && $last->{stream} == $of && _is_last($error) && _leads_to(_frames(\@calls), _frames($last->{calls}));
    $last = { error => ref $error ? $error : "$error", calls => \@calls, stream => $of };
    weaken $last->{error} if ref $error;
    return;
}

sub _is_last {
    my ($error) = @_;
    my $noted = $last && $last->{error};
    return 0 if !defined $noted || !defined $error;
    return ref $error && refaddr($error) == refaddr($noted) if ref $noted;
    return !ref $error && length $noted && index($error, $noted) == 0;
}

# Whether these frames are the outer ones of those, but for the line that is being run.
sub _leads_to {
    my ($frames, $all) = @_;
    return 0 if @$frames > @$all;
    for my $place (1 .. @$frames) {
        my ($one, $other) = ($frames->[-$place], $all->[-$place]);
        return 0 if ($one->{function} // '') ne ($other->{function} // '') || $one->{file} ne $other->{file};
        return 0 if $place < @$frames && $one->{line} != $other->{line};
    }
    return 1;
}

# The application's frames, the innermost first. A call tells which sub was called from which line.
sub _frames {
    my ($calls) = @_;
    my ($inner, @frames);
    for my $call (@$calls, undef) {
        my ($package, $file, $line, $function, $text, $is_file, $arguments) = $call ? @$call : ();
        # The program around the application.
        last if defined $function && $function =~ /\A(?:Parkade::Worker|Plack::Handler::Parkade)::/;
        # In the package of the application, but a line of ours.
        undef $inner if defined $function && $function eq 'Parkade::Loader::_done';
        # An eval is in the same sub as the lines in it.
        next if $call && $inner && $function eq '(eval)' && !$is_file && !defined $text;
        if ($inner && $inner->{package} !~ /\A(?:Parkade(?:::|\z)|Carp\z|Carp::|Future\z)/) {
            $inner->{function}  = defined $function && $function ne '(eval)' ? $function : undef;
            $inner->{arguments} = $arguments;
            push @frames, $inner;
        }
        $inner = $call && { package => $package, file => $file, line => $line };
    }
    return \@frames;
}

# The exception as people read it, with its stack: its own, or that of the place where it was thrown.
sub of {
    my ($class, $error) = @_;
    my $text = _text($error);
    my $calls = _own_calls($error) || (_is_last($error) ? $last->{calls} : []);
    undef $last;
    # Of Carp: confess, cluck, longmess.
    my $has_stack = $text =~ s/^\t.* called at \Q$folder\E\S+ line \d+\.?\n?//mgr =~ /^\t.* called at /m;
    my $frames = $has_stack ? [] : _frames($calls);
    $text =~ s/^\tParkade::Trace::_thrown\(.*\n?//mg;
    $text =~ s/^\t(?:Parkade::\S.*|eval \{\.\.\.\}) called at \Q$folder\E\S+ line \d+\.?\n?//mg;
    $text =~ s/^(\t.*) called at \Q$folder\E\S+ line \d+\.?$/$1/mg;
    chomp $text;
    return bless { text => $text, frames => $frames }, $class;
}

sub text   { return $_[0]{text} }
sub frames { return $_[0]{frames} }
sub first  { return (split /\n/, $_[0]{text})[0] // '' }

sub stack {
    my ($self) = @_;
    return join '', map { "  $_\n" } map { defined $_->{function} ? "$_->{file} line $_->{line}, in $_->{function}" : "$_->{file} line $_->{line}" } @{ $self->{frames} };
}

# All of it; only the text if there is no more to be told.
sub whole {
    my ($self) = @_;
    my $stack = $self->stack;
    return length $stack ? "$self->{text}\n" . HEADING . "\n$stack" : $self->{text};
}

# The same of code that does not load, with the reason at the end, where the core looks for it. What loads what is in Perl's
# own message, or in the stack.
sub of_loading {
    my ($self) = @_;
    my $text = "$self->{text}\n";
    return $text if !grep { defined $_->{function} && $_->{function} !~ /::BEGIN\z/ } @{ $self->{frames} };
    $text =~ s/^(?:BEGIN failed--|BEGIN not safe after errors|Compilation failed in require|Execution of ).*\n//mg;
    return "Stack (most recent call last):\n" . join('', reverse split /^/, $self->stack) . $text;
}

sub _text {
    my ($error) = @_;
    return 'Died' if !defined $error;
    return "$error" if !ref $error;
    my $text = eval { _text_of_reference($error) };
    return defined $text && length $text ? $text : ref $error;
}

sub _text_of_reference {
    my ($error) = @_;
    if (blessed $error) {
        return "$error" if overload::Method($error, '""');
        my $message = $error->can('message') ? $error->message : undef;
        return ref($error) . (defined $message ? ": $message" : '');
    }
    require Data::Dumper;
    my $data = Data::Dumper->new([$error])->Terse(1)->Indent(0)->Sortkeys(1)->Maxdepth(3)->Dump;
    return length $data > DATA_MAX ? substr($data, 0, DATA_MAX) . "\x{2026}" : $data;
}

# Of exceptions that bring their stack: Mojo::Exception, Exception::Class, Throwable, Moose and others.
sub _own_calls {
    my ($error) = @_;
    return if !blessed $error;
    my $calls = eval {
        my $frames = $error->can('frames') ? $error->frames : undef;
        return $frames if ref $frames eq 'ARRAY' && @$frames && !grep { ref ne 'ARRAY' } @$frames;
        for my $method (qw(stack_trace trace)) {
            next if $error->can('frames') || !$error->can($method);
            my $trace = $error->$method;
            next if !blessed $trace || !$trace->can('frames');
            return [map { [$_->package, $_->filename, $_->line, $_->subroutine] } $trace->frames];
        }
        undef;
    };
    return $calls && @$calls ? [map { [@$_[0 .. 3]] } @$calls] : undef;
}

# An argument may be gone already: nobody keeps those of callers.
sub _shown {
    my ($value) = @_;
    local $@;
    my $shown = eval {
        local $SIG{__DIE__};
        !defined $value ? 'undef' : ref $value ? overload::StrVal($value) : $value =~ /\A-?[0-9]{1,15}\z/ ? "$value" : _quoted($value);
    };
    return $shown // '(gone)';
}

sub _quoted {
    my ($text) = @_;
    my $cut = length $text > VALUE_MAX ? substr($text, 0, VALUE_MAX) . "\x{2026}" : "$text";
    return "'" . $cut =~ s/([\\'])/\\$1/gr . "'";
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Trace - an exception of the application, with the stack of its code

=head1 DESCRIPTION

A handler for C<$SIG{__DIE__}> notes the stack where an exception is thrown. What the application catches itself costs a
look at the nearest C<eval>, and is not noted. A handler that the application has set is called after it; one that it sets
for some of its code (C<local $SIG{__DIE__}>) replaces it there.

Frames of Parkade, and of Carp, are left out.

=head1 FUNCTIONS

=head2 begin(dev => $boolean, stream => $code), settle

Before the application is loaded, and after that. With C<dev>, the arguments of subs are noted, too, and the stacks of exceptions
that were caught and are thrown again. C<stream> tells for which stream the application is working.

=head1 METHODS

=head2 of($exception)

The trace of an exception that was caught just now.

=head2 text, first, frames, stack, whole, of_loading

What the exception says, and its first line; the frames, the innermost first (C<package>, C<file>, C<line>, C<function>,
C<arguments>); these as text; text and stack; the same for code that did not load.

=cut
