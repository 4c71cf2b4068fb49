package Timesheet::Report;

# From records to the text of the report.

use strict;
use warnings;
use Exporter 'import';
use Timesheet::Duration qw(clock);

our @EXPORT_OK = qw(report);

sub report {
    my (@records) = @_;
    my @blocks;
    my ($person, $project, @lines);
    my ($sum, $total, $everybody) = (0, 0, 0);

    for my $record (@records) {
        if (defined $person && $record->{person} ne $person) {
            push @lines, row($project, $sum);
            push @blocks, block($person, $total, @lines);
            @lines = ();
            ($sum, $total) = (0, 0);
            undef $project;
        }
        if (defined $project && $record->{project} ne $project) {
            push @lines, row($project, $sum);
            $sum = 0;
        }
        ($person, $project) = ($record->{person}, $record->{project});
        $sum += $record->{minutes};
        $total += $record->{minutes};
        $everybody += $record->{minutes};
    }
    push @blocks, block($person, $total, @lines) if defined $person;

    return join("\n", @blocks, sprintf("%-16s%7s\n", 'everybody', clock($everybody)));
}

sub block {
    my ($person, $total, @lines) = @_;
    return join '', "$person\n", @lines, row('total', $total);
}

sub row {
    my ($label, $minutes) = @_;
    return sprintf "  %-14s%7s\n", $label, clock($minutes);
}

1;
