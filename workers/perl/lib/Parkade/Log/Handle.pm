package Parkade::Log::Handle;

use strict;
use warnings;

use IO::Handle     ();
use Parkade::Log   ();
use PerlIO         ();
use Symbol         ();

sub attach {
    my ($class, $glob) = @_;
    my $self = bless { io => *{$glob}{IO} }, $class;
    $self->_look;
    $self->{log} = $self->_target;
    tie *{ $self->{io} }, $self;
    return $self;
}

sub detach {
    my ($class, $glob) = @_;
    my $io = *{$glob}{IO};
    no warnings 'untie';
    untie *$io if $io && ref tied *$io eq $class;
    return;
}

sub TIEHANDLE { return $_[0] }

# Whether what is written to it gets to the log: the application may have opened it anew, or another file at its descriptor.
sub is_log {
    my ($self) = @_;
    return defined $self->{descriptor} && $self->_target eq $self->{log};
}

# Whether a warning that is written to the handle gets to the log.
sub is_log_at {
    my ($class, $glob) = @_;
    my $io   = *{$glob}{IO};
    my $self = $io && tied *$io;
    return ref $self eq $class && $self->is_log;
}

# Each print asks. stat(2) would change what `-d _` in the application's code is about.
sub _target {
    my ($self) = @_;
    local $!;
    return readlink("/proc/self/fd/$self->{descriptor}") // $self->{inode};
}

# Without the tie, what code does to it is what Perl does to any handle.
sub _untied {
    my ($self, $code, @arguments) = @_;
    my $io = $self->{io};
    no warnings 'untie';
    untie *$io;
    my ($result, $error);
    my $went_well = do { local $@; my $ok = eval { $result = $code->($io, @arguments); 1 }; $error = $@; $ok };
    tie *$io, $self;
    die $error if !$went_well;
    return $result;
}

# After something has been done to it.
sub _look {
    my ($self) = @_;
    my $io = $self->{io};
    my $descriptor = fileno $io;
    $self->{descriptor} = defined $descriptor && $descriptor >= 0 ? $descriptor : undef;
    # Where there is no /proc.
    $self->{inode} = '';
    $self->{inode} = join ':', (stat $io)[0, 1] if defined $self->{descriptor} && !length $self->_target;
    my @layers = grep { !/\A(?:unix|perlio|stdio)\z/ } PerlIO::get_layers(*$io, output => 1);
    $self->{layers} = join ' ', map { ":$_" } @layers;
    return;
}

sub _changed {
    my ($self, $code, @arguments) = @_;
    return $self->_untied(
        sub {
            my $result = $code->(@_);
            my $reason = $!;
            $self->_look;
            $! = $reason;
            return $result;
        },
        @arguments
    );
}

# Whether what is printed now is a record.
sub _is_recorded {
    my ($self) = @_;
    return Parkade::Log::stream() && $self->is_log;
}

# The warnings are those that Perl would give the code that prints.
sub PRINT {
    my ($self, @list) = @_;
    warnings::warnif('uninitialized', 'Use of uninitialized value in print') if grep { !defined } @list;
    no warnings 'uninitialized';
    return $self->_say('print', join($, // '', @list) . ($\ // ''));
}

sub PRINTF {
    my ($self, $format, @list) = @_;
    warnings::warnif('uninitialized', 'Use of uninitialized value in printf') if grep { !defined } @list;
    no warnings;
    return $self->_say('printf', sprintf $format, @list);
}

sub _say {
    my ($self, $operation, $text) = @_;
    warnings::warnif('utf8', "Wide character in $operation") if !length $self->{layers} && $text =~ /[^\x00-\xff]/;
    return $self->_untied(sub { my ($io) = @_; no warnings 'utf8'; local ($,, $\); print {*$io} $text }) if !$self->_is_recorded;
    Parkade::Log::printed($self->_encoded($text));
    return 1;
}

sub WRITE {
    my ($self, $data, $length, $offset) = @_;
    my $bytes = substr $data, $offset // 0, $length // length $data;
    return $self->_untied(sub { my ($io) = @_; syswrite *$io, $bytes }) if !$self->_is_recorded || !utf8::downgrade($bytes, 1);
    Parkade::Log::printed($bytes);
    return length $bytes;
}

# The bytes that the handle would write.
sub _encoded {
    my ($self, $text) = @_;
    if (!length $self->{layers}) {
        return $text if utf8::downgrade($text, 1);
    }
    elsif ($self->{layers} ne ':utf8') {
        open my $handle, ">$self->{layers}", \my $bytes or return $text;
        { local ($,, $\); print {$handle} $text }
        close $handle;
        return $bytes;
    }
    utf8::encode($text);
    return $text;
}

sub OPEN {
    my ($self, $mode, @rest) = @_;
    # Names without a package are those of the code that calls.
    my $package = caller;
    if (@rest) {
        $rest[0] = Symbol::qualify($rest[0], $package) if $mode =~ /&/ && defined $rest[0] && !ref $rest[0] && $rest[0] =~ /\A[A-Za-z_]/;
        return $self->_changed(sub { my ($io, $mode, @rest) = @_; open *$io, $mode, @rest }, $mode, @rest);
    }
    $mode =~ s/\A(\s*\+?[<>]{1,2}&=?\s*)([A-Za-z_][\w:']*)\s*\z/$1 . Symbol::qualify($2, $package)/e;
    return $self->_changed(sub { my ($io, $mode) = @_; open *$io, $mode }, $mode);
}

sub CLOSE { my ($self) = @_; return $self->_changed(sub { my ($io) = @_; close *$io }) }

sub BINMODE {
    my ($self, @layers) = @_;
    return $self->_changed(sub { my ($io, @layers) = @_; @layers ? binmode *$io, $layers[0] : binmode *$io }, @layers);
}

sub FILENO { my ($self) = @_; return $self->_untied(sub { my ($io) = @_; fileno *$io }) }
sub EOF    { my ($self) = @_; return $self->_untied(sub { my ($io) = @_; eof *$io }) }
sub TELL   { my ($self) = @_; return $self->_untied(sub { my ($io) = @_; tell *$io }) }
sub SEEK   { my ($self, @where) = @_; return $self->_untied(sub { my ($io, $at, $from) = @_; seek *$io, $at, $from }, @where) }

sub READLINE { my ($self) = @_; my $all = wantarray; return @{ $self->_untied(sub { my ($io) = @_; [$all ? readline *$io : scalar readline *$io] }) } }
sub GETC     { my ($self) = @_; return $self->_untied(sub { my ($io) = @_; getc *$io }) }

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Log::Handle - the standard output and the standard error of a worker

=head1 DESCRIPTION

What code prints while it works for a request is a record of the log, which names the request. The handles are tied for
that, and behave like any other: their descriptors are 1 and 2, programs that are started inherit them, and they can be
opened anew, duplicated, closed, replaced by C<local>, and given layers. Once a handle leads somewhere else, what is printed
goes there as it is. So does what is printed for no request, and what is written to a duplicate.

=head1 METHODS

=head2 attach($glob), detach($glob)

Ties a handle that leads to the log; takes the tie away.

=head2 is_log

Whether the handle leads to the log.

=head2 is_log_at($glob)

Whether the handle that has this name now is tied by this class, and leads to the log.

=cut
