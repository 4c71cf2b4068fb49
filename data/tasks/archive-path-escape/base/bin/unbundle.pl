#!/usr/bin/perl
# Unpack a bundle: perl bin/unbundle.pl BUNDLE FOLDER

use strict;
use warnings;
use Cwd 'abs_path';
use File::Basename 'dirname';

use lib dirname(abs_path(__FILE__)) . '/../lib';
use Bundle::Extract;
use Bundle::Reader;

die "usage: perl bin/unbundle.pl BUNDLE FOLDER\n" unless @ARGV == 2;
my ($bundle, $folder) = @ARGV;
die "$folder: not a folder\n" unless -d $folder;
open my $handle, '<:raw', $bundle or die "$bundle: $!\n";

my $refused = 0;
my $done = eval {
    my $reader = Bundle::Reader->new($handle);
    my $extract = Bundle::Extract->new($folder);
    while (my $entry = $reader->next) {
        next if eval { $extract->entry($entry); 1 };
        my $why = $@;
        die $why unless ref $why eq 'Bundle::Refused';
        print STDERR "refused $entry->{name}: $why->{why}\n";
        $refused++;
    }
    1;
};
unless ($done) {
    print STDERR "$bundle: $@";
    exit 1;
}
exit($refused ? 3 : 0);
