package Parkade::Sources;

use strict;
use warnings;

use Config ();
use Cwd    ();

# The protocol's: paths, and the bytes of each. Then: the rest is left out.
use constant { WATCHED_MAX => 200, PATH_MAX => 4_096 };

# Of Perl itself, and of what was installed for all applications.
my @installed;

sub _installed {
    return map { _real($_) } grep { defined && length }
      @Config::Config{qw(privlibexp archlibexp sitelibexp sitearchexp vendorlibexp vendorarchexp)},
      $INC{'strict.pm'} =~ s{/strict\.pm\z}{}r,    # Debian has some of Perl in a folder of its own
      '/etc/perl', '/usr/share/perl5', __FILE__ =~ s{/Parkade/Sources\.pm\z}{}r;
}

# Where carton, local::lib and cpanm -L install.
my $LOCAL = qr{/(?:lib|share)/perl5(?:/|\z)};

sub _real { my ($path) = @_; return Cwd::abs_path($path) // $path }

# Whether a file belongs to what is installed rather than to the application.
sub is_installed {
    my ($file) = @_;
    my $path = _real($file);
    return 1 if $path =~ $LOCAL;
    @installed = _installed() if !@installed;
    return !!grep { index($path, "$_/") == 0 || $path eq $_ } @installed;
}

# The folders and files from which the application was loaded, or would have been: for `parkade dev`. `$target` is its file.
sub watched {
    my ($target) = @_;
    my @folders = grep { !ref && -d && !is_installed($_) } @INC;
    @folders = map { _real($_) } @folders;
    my $own = defined $target && -f $target ? _real($target) : undef;
    my %watched;
    for my $name (keys %INC) {
        my $file = $INC{$name};
        next if ref $file;
        # A file that did not compile has a name and no path.
        ($file) = grep { -f } map { "$_/$name" } @folders if !defined $file;
        next if !defined $file || !-f $file || is_installed($file);
        my $path = _real($file);
        my ($folder) = sort { length $b <=> length $a } grep { index($path, "$_/") == 0 } @folders;
        $watched{ defined $folder ? _whole($folder, $own) : $path } = 1;
    }
    my @outermost = grep { my $path = $_; !grep { index($path, "$_/") == 0 } keys %watched } sort keys %watched;
    @outermost = grep { length() <= PATH_MAX && utf8::decode($_) } @outermost;    # which makes text of it
    splice @outermost, WATCHED_MAX if @outermost > WATCHED_MAX;
    return \@outermost;
}

# The folder of modules, or that of the application, if its script and its modules lie next to each other: bin/app.psgi, lib,
# and what else it needs.
sub _whole {
    my ($folder, $own) = @_;
    my $above = $folder =~ s{/[^/]+\z}{}r;
    return $folder if !length $above || !defined $own || $above eq _real($ENV{HOME} // '/');
    return $own =~ m{\A\Q$above\E/[^/]+/[^/]+\z} ? $above : $folder;
}

1;

__END__

=encoding UTF-8

=head1 NAME

Parkade::Sources - which files are the application's

=head1 FUNCTIONS

=head2 is_installed($file)

Whether it belongs to Perl, to Parkade or to an installed distribution.

=head2 watched($target)

The folders and files of the application's code: absolute paths.

=cut
