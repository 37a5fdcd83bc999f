# Which files are the application's.

use strict;
use warnings;

use Test::More;
use Parkade::Sources ();

ok(Parkade::Sources::is_installed($INC{'strict.pm'}), 'what comes with Perl is installed');
ok(Parkade::Sources::is_installed($INC{'Parkade/Sources.pm'}), 'and so is Parkade');
ok(Parkade::Sources::is_installed('/srv/shop/local/lib/perl5/Plack.pm'), 'and what carton has installed');
ok(!Parkade::Sources::is_installed('/srv/shop/lib/Shop.pm'), 'the application is not');

done_testing;
