# One statement after the other, straight from DBD::Pg: serial.pl DSN SQL COUNT
use strict;
use warnings;
use DBI;
use Time::HiRes 'time';

my ($dsn, $sql, $count) = @ARGV;
my $database  = DBI->connect($dsn, undef, undef, { RaiseError => 1 });
my $statement = $database->prepare($sql);
ask() for 1 .. 3;
my $began = time;
ask() for 1 .. $count;
printf qq({"seconds": %.6f, "count": %d}\n), time - $began, $count;

sub ask {
    $statement->execute;
    $statement->fetchall_arrayref;
}
