package Parkade::Sources;

use strict;
use warnings;

use Config ();
use Cwd    ();

# Of Perl itself, and of what was installed for all applications.
my @INSTALLED = map { _real($_) } grep { defined && length }
  @Config::Config{qw(privlibexp archlibexp sitelibexp sitearchexp vendorlibexp vendorarchexp)},
  $INC{'strict.pm'} =~ s{/strict\.pm\z}{}r,    # Debian has some of Perl in a folder of its own
  '/etc/perl', '/usr/share/perl5', __FILE__ =~ s{/Parkade/Sources\.pm\z}{}r;

# Where carton, local::lib and cpanm -L install.
my $LOCAL = qr{/(?:lib|share)/perl5(?:/|\z)};

sub _real { my ($path) = @_; return Cwd::abs_path($path) // $path }

# Whether a file belongs to what is installed rather than to the application.
sub is_installed {
    my ($file) = @_;
    my $path = _real($file);
    return 1 if $path =~ $LOCAL;
    return !!grep { index($path, "$_/") == 0 || $path eq $_ } @INSTALLED;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Sources - which files are the application's

=head1 FUNCTIONS

=head2 is_installed($file)

Whether it belongs to Perl, to Parkade or to an installed distribution.

=cut
