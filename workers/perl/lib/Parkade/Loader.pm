package Parkade::Loader;

use strict;
use warnings;

use Cwd           ();
use Parkade::PSGI ();

# Loads the application that $target names: a file, or the name of a module.
sub load {
    my ($target, %settings) = @_;
    my $wanted = delete $settings{interface} // 'auto';
    die "--interface says $wanted, but $target is a Perl application\n" if $wanted eq 'wsgi' || $wanted eq 'asgi';
    $ENV{PLACK_ENV} ||= $settings{dev} ? 'development' : 'deployment';
    my $is_module = $target =~ /\A\w+(?:::\w+)*\z/ && !-e $target;
    my $loaded    = $is_module ? _module($target, $wanted) : _file($target);
    my $is_psgi   = _is_psgi($loaded);
    my $is_native = _has_routes() && ($wanted eq 'native' || $wanted ne 'psgi' && !$is_psgi);
    return Parkade::Native->new(%settings) if $is_native;
    die "--interface says native, but $target declares no routes of Parkade\n" if $wanted eq 'native';
    if ($is_psgi) {
        my $is_code = ref $loaded eq 'CODE' || _is_callable($loaded);
        return Parkade::PSGI->new($is_code ? $loaded : $loaded->to_app, %settings);
    }
    my $kind = !defined $loaded ? 'undef' : ref $loaded || qq{"$loaded"};
    my $told = "$target returns $kind, which is not a PSGI application (a code reference)";
    die "--interface says psgi, but $told\n" if $wanted eq 'psgi';
    die "$told, and declares no routes of Parkade\n";
}

sub _has_routes { return $INC{'Parkade/App.pm'} && Parkade::App::has_routes() }

sub _is_psgi {
    my ($value) = @_;
    return ref $value eq 'CODE' || _is_callable($value) || ref $value && eval { $value->can('to_app') };
}

sub _is_callable {
    my ($value) = @_;
    return ref $value && overload::Method($value, '&{}') ? 1 : 0;
}

sub _file {
    my ($target) = @_;
    my $path = Cwd::abs_path($target);
    die "there is no file $target\n" if !defined $path || !-f $path;
    local @ARGV;
    return run_file($path);
}

# The last value of a script, which finds its own folder as when it is started by hand.
sub run_file {
    my ($path) = @_;
    # `do` would tell by $!, which what the file does may have set as well.
    open my $file, '<', $path or die "cannot read $path: $!\n";
    close $file;
    $0 = $path;
    FindBin->again if $INC{'FindBin.pm'};    # otherwise it looks when it is loaded
    my ($loaded, $error);
    {
        local ($@, $!);
        $loaded = _done($path);
        $error  = $@;
    }
    die _told($error) if ref $error || length $error && !defined $loaded;
    return $loaded;
}

# In the package where a script begins.
{
    package main;
    sub Parkade::Loader::_done { return do $_[0] }
}

sub _module {
    my ($name, $wanted) = @_;
    unshift @INC, Cwd::getcwd() . '/lib', Cwd::getcwd();
    (my $file = "$name.pm") =~ s{::}{/}g;
    eval { require $file; 1 } or die _told($@);
    return undef if $wanted eq 'native' || $wanted ne 'psgi' && _has_routes();
    for my $method (qw(to_psgi_app to_app psgi_app)) {
        return $name->$method if $name->can($method);
    }
    die "the module $name has neither to_app nor to_psgi_app nor psgi_app\n";
}

# An error of the application's code, without the lines that this package adds.
sub _told {
    my ($error) = @_;
    return $error if ref $error;
    $error =~ s/^Compilation failed in require at \S*Parkade\/Loader\.pm line \d+\.?\n//mg;
    return $error =~ s/ at \S*Parkade\/Loader\.pm line \d+\.?\n/\n/gr;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Loader - loads an application

=head1 FUNCTIONS

=head2 load($target, dev => $boolean, interface => $name)

The application that a link runs: one of PSGI, or, if there are routes of Parkade, L<Parkade::Native>. C<$target> is the path of a file, whose last value is a code reference or an object with
C<to_app>, or the name of a module with one of the methods C<to_app>, C<to_psgi_app>, C<psgi_app>. C<PLACK_ENV> is
C<deployment>, or C<development> under C<parkade dev>, unless it is set. C<interface> is C<auto>, or C<psgi> or
C<native>: then it has to be that. Dies with a text for the log.

=head2 run_file($path)

The last value of a script that runs as if it had been started by hand.

=cut
