# Every module compiles, and each public function has documentation, also those of further packages in its file.

use strict;
use warnings;

use File::Find qw(find);
use Pod::Man ();
use Pod::Simple ();
use Test::More;

# What Perl calls by itself.
my %OF_PERL = map { ($_ => 1) } qw(AUTOLOAD CLONE DESTROY import unimport TIEHANDLE PRINT PRINTF WRITE READ READLINE GETC OPEN CLOSE BINMODE
    FILENO EOF TELL SEEK UNTIE);

my @files;
find({ no_chdir => 1, wanted => sub { push @files, $_ if /\.pm\z/ } }, 'lib');

for my $file (sort @files) {
    (my $module = $file) =~ s{\Alib/|\.pm\z}{}g;
    $module =~ s{/}{::}g;
    require_ok($module) or next;
    my $source = do { local (@ARGV, $/) = $file; <> };
    my ($code, $documentation) = split /^__END__$/m, $source, 2;
    ok(defined $documentation, "$module has documentation") or next;
    my $parser = Pod::Simple->new;
    $parser->output_string(\my $shown);
    $parser->parse_string_document("$documentation");
    ok(!$parser->any_errata_seen, "the documentation of $module is well-formed");
    my @public = grep { !$OF_PERL{$_} } $code =~ /^\h*sub ([A-Za-z]\w*)\b(?!::)/mg;
    my @missing = grep { $documentation !~ /^=(?:head[23]|item)\b[^\n]*\b\Q$_\E\b/m } @public;
    is_deeply(\@missing, [], "what is public in $module is documented");
}
done_testing;
