# Which files are the application's, and what `parkade dev` is told to watch.

use strict;
use warnings;

use Cwd        qw(abs_path);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;
use Parkade::Sources ();

my $folder = abs_path(tempdir(CLEANUP => 1));

sub written {
    my ($name, $text) = @_;
    make_path("$folder/$name" =~ s{/[^/]+\z}{}r);
    open my $file, '>', "$folder/$name" or die "$name: $!";
    print {$file} $text;
    close $file or die "$name: $!";
    return "$folder/$name";
}

sub told {
    my ($target) = @_;
    return [map { s{\A\Q$folder\E/}{}r } grep { index($_, $folder) == 0 } @{ Parkade::Sources::watched($target) }];
}

ok(Parkade::Sources::is_installed($INC{'strict.pm'}), 'what comes with Perl is installed');
ok(Parkade::Sources::is_installed($INC{'Parkade/Sources.pm'}), 'and so is Parkade');
ok(Parkade::Sources::is_installed('/srv/shop/local/lib/perl5/Plack.pm'), 'and what carton has installed');
ok(!Parkade::Sources::is_installed('/srv/shop/lib/Shop.pm'), 'the application is not');

my $app = written('shop/bin/app.psgi', '1;');
written('shop/lib/Shop/Web.pm', 'package Shop::Web; 1;');
written('shop/local/lib/perl5/Carton.pm', 'package Carton; 1;');
written('common/Common.pm', 'package Common; 1;');
written('common/Broken.pm', 'package Broken; sub { (');
my $alone = written('alone/settings.pl', '1;');
unshift @INC, "$folder/shop/bin/../lib", "$folder/shop/local/lib/perl5", "$folder/common";
require Shop::Web;
require Carton;
is_deeply(told(undef), ['shop/lib'], 'the folder of modules, without links and dots');
is_deeply(told($app), ['shop'], 'the folder of the application, if its script lies next to them');
{
    local $ENV{HOME} = "$folder/shop";
    is_deeply(told($app), ['shop/lib'], 'but never all of a home');
}
eval { require Broken };
like($@, qr/Broken\.pm/, 'a module that does not compile');
is_deeply(told(undef), ['common', 'shop/lib'], 'has its folder told');
require $alone;
is_deeply(told(undef), ['alone/settings.pl', 'common', 'shop/lib'], 'a file that was found nowhere in @INC');

{
    my @names = map { sprintf 'many/%03d.pl', $_ } 0 .. 250;
    require(written($_, '1;')) for @names;
    is(scalar @{ Parkade::Sources::watched(undef) }, Parkade::Sources::WATCHED_MAX, 'there is a limit');
}
done_testing;
