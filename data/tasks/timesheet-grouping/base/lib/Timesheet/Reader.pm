package Timesheet::Reader;

# From lines to records: { date, person, project, minutes }.

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(read_records);

sub read_records {
    my ($handle) = @_;
    my @records;
    while (my $line = <$handle>) {
        $line =~ s/\s+\z//;
        next if $line eq '' || $line =~ /\A#/;
        my ($date, $person, $project, $duration) = map { trim($_) } split /;/, $line, -1;
        die "line $.: expected date;person;project;h:mm, found '$line'\n"
            unless defined $duration && $duration =~ /\A(\d+):([0-5]\d)\z/;
        push @records, { date => $date, person => $person, project => $project, minutes => $1 * 60 + $2 };
    }
    return @records;
}

sub trim {
    my ($text) = @_;
    $text =~ s/\A\s+|\s+\z//g;
    return $text;
}

1;
