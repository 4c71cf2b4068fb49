package Timesheet::Duration;

# Minutes as people read them.

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(clock);

sub clock {
    my ($minutes) = @_;
    return sprintf '%d:%02d', int($minutes / 60), $minutes % 60;
}

1;
