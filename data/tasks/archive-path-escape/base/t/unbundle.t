#!/usr/bin/perl
# The tests of unbundle, in TAP, with nothing but core Perl.

use strict;
use warnings;
use File::Temp 'tempdir';

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

sub unbundle {
    my ($bundle, $folder) = @_;
    open my $handle, '>:raw', "$folder.bundle" or die $!;
    print {$handle} $bundle;
    close $handle or die $!;
    mkdir $folder;
    return system("perl bin/unbundle.pl $folder.bundle $folder 2> $folder.err") >> 8;
}

sub content {
    my ($path) = @_;
    open my $handle, '<:raw', $path or return "($!)";
    local $/;
    return scalar readline $handle;
}

my $work = tempdir(CLEANUP => 1);
is(unbundle("bundle 1\nfile 644 3 a/b.txt\none\nlink a/c -> b.txt\ndir d/e\nend\n", "$work/plain"), 0, 'a plain bundle');
is(content("$work/plain/a/b.txt"), 'one', 'the content of a file');
is(content("$work/plain/a/c"), 'one', 'a link to a neighbour');
is(-d "$work/plain/d/e" ? 'there' : 'missing', 'there', 'an empty folder');
is(unbundle("bundle 1\nfile 644 9 x\none\nend\n", "$work/short"), 1, 'a wrong length');
is(unbundle("bundle 1\nfile 644 3 x\none\n", "$work/cut"), 1, 'no end');
print "1..$count\n";
exit($failed ? 1 : 0);
