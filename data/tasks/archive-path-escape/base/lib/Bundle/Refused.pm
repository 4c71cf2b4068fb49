package Bundle::Refused;

# Thrown for an entry that is not unpacked.

use strict;
use warnings;

sub throw {
    my ($class, $why) = @_;
    die bless { why => $why }, $class;
}

1;
