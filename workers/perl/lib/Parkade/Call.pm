package Parkade::Call;

use strict;
use warnings;

# In Perl's own words for code that is called in no loop.
use constant HAS_LEFT => qq{Can't "last" outside a loop block\n};

# What the code dies of, or nothing. `last`, `next` and `redo` outside its own loops would act on one of ours.
sub fault {
    my ($code, @arguments) = @_;
    my ($has_begun, $has_ended, $fault);
    {
        last if $has_begun++;
        $fault = eval { $code->(@arguments); 1 } ? undef : $@;
        $has_ended = 1;
    }
    return $has_ended ? $fault : HAS_LEFT;
}

# What it returns. Dies of what the code dies of.
sub value {
    my ($code, @arguments) = @_;
    my $value;
    my $fault = fault(sub { $value = $code->(@arguments) });
    die $fault if defined $fault;
    return $value;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Call - calls code of the application

=head1 DESCRIPTION

C<last>, C<next> and C<redo> leave a sub, and act on the innermost loop of whoever has called it. In code of the application
they are a mistake of the application, and must not end or repeat what the worker is doing.

=head1 FUNCTIONS

=head2 fault($code, @arguments)

Calls the code. Returns its exception, or C<undef> if it has returned.

=head2 value($code, @arguments)

Calls the code, and returns its value, a scalar. Dies with its exception.

=cut
