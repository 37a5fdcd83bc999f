# Every module compiles, and each of its public functions has documentation.

use strict;
use warnings;

use File::Find qw(find);
use Pod::Man ();
use Pod::Simple ();
use Test::More;

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
    my ($own) = split /^package (?!\Q$module\E;)/m, $code;
    my @missing = grep { $documentation !~ /^=(?:head[23]|item)\b[^\n]*\b\Q$_\E\b/m } $own =~ /^sub ([a-z]\w*)/mg;
    is_deeply(\@missing, [], "what is public in $module is documented");
}
done_testing;
