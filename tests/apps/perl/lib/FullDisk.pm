package FullDisk;

# For -M: the folder of temporary files is full.

use strict;
use warnings;

use File::Temp ();

no warnings 'redefine';

*File::Temp::tempfile = sub {
    open my $handle, '>', '/dev/full' or die $!;
    return $handle;
};

1;
