#!/usr/bin/perl
# The tests of timesheet, in TAP, with nothing but core Perl.

use strict;
use warnings;
use File::Temp 'tempfile';
use lib 'lib';
use Timesheet::Duration 'clock';
use Timesheet::Reader 'read_records';

my $count = 0;
my $failed = 0;

sub is {
    my ($got, $wanted, $name) = @_;
    $count++;
    my $good = $got eq $wanted;
    $failed++ unless $good;
    print $good ? 'ok' : 'not ok', " $count - $name\n";
    print "# wanted '$wanted', got '$got'\n" unless $good;
}

sub records {
    my ($text) = @_;
    my ($handle, $name) = tempfile(UNLINK => 1);
    print {$handle} $text;
    close $handle or die $!;
    open $handle, '<', $name or die $!;
    return read_records($handle);
}

is(clock(0), '0:00', 'nothing');
is(clock(61), '1:01', 'an hour and a minute');
is(clock(6000), '100:00', 'more than a day');
is(scalar(records("# c\n\n2024-03-04; Ada ;compiler;7:45\r\n")), 1, 'comments and empty lines do not count');
is((records("2024-03-04; Ada ;compiler;7:45"))[0]{person}, 'Ada', 'space around a field does not count');
is((eval { records("a;b;c;1:75"); 1 } ? 'read' : $@), "line 1: expected date;person;project;h:mm, found 'a;b;c;1:75'\n",
    'a wrong duration is refused');

print "1..$count\n";
exit($failed ? 1 : 0);
