package Bundle::Extract;

# Puts entries into a folder.

use strict;
use warnings;
use Bundle::Name 'clean';
use Bundle::Refused;
use File::Basename 'dirname';
use File::Path 'make_path';

sub new {
    my ($class, $folder) = @_;
    return bless { folder => $folder }, $class;
}

sub entry {
    my ($self, $entry) = @_;
    my $name = clean($entry->{name});
    Bundle::Refused->throw('the name is empty') if $name eq '';
    my $path = "$self->{folder}/$name";
    my $kind = $entry->{kind};
    make_path($kind eq 'dir' ? $path : dirname($path));
    return if $kind eq 'dir';
    Bundle::Refused->throw('a folder has that name') if -d $path && !-l $path;
    if ($kind eq 'link') {
        unlink $path;
        symlink $entry->{target}, $path or die "$path: $!\n";
        return;
    }
    open my $handle, '>:raw', $path or die "$path: $!\n";
    print {$handle} $entry->{content};
    close $handle or die "$path: $!\n";
    chmod $entry->{mode} & 0777, $path;
}

1;
