package Bundle::Name;

# What a name in a bundle means.

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(clean);

# clean NAME: the name without what could lead out of the folder.
sub clean {
    my ($name) = @_;
    $name =~ s{\A/+}{};
    $name =~ s{\A(?:\.\./)+}{};
    $name =~ s{/+}{/}g;
    return $name;
}

1;
