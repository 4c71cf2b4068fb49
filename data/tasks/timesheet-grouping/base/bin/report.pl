#!/usr/bin/perl
# Print the report of one or more files: perl bin/report.pl FILE...

use strict;
use warnings;
use Cwd 'abs_path';
use File::Basename 'dirname';

use lib dirname(abs_path(__FILE__)) . '/../lib';
use Timesheet::Reader 'read_records';
use Timesheet::Report 'report';

die "usage: perl bin/report.pl FILE...\n" unless @ARGV;

my @records;
for my $file (@ARGV) {
    open my $handle, '<', $file or die "$file: $!\n";
    push @records, eval { read_records($handle) };
    die "$file: $@" if $@;
    close $handle;
}
print report(@records);
