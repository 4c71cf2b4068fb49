package Bundle::Reader;

# From a byte stream to entries: { kind, name, and mode, content or target }.

use strict;
use warnings;

sub new {
    my ($class, $handle) = @_;
    my $self = bless { handle => $handle }, $class;
    die "not a bundle\n" unless $self->_line eq 'bundle 1';
    return $self;
}

# next: the next entry, or nothing after the last.
sub next {
    my ($self) = @_;
    my $line = $self->_line;
    return if $line eq 'end';
    return { kind => 'dir', name => $1 } if $line =~ /\Adir (.+)\z/;
    return { kind => 'link', name => $1, target => $2 } if $line =~ /\Alink (.+?) -> (.+)\z/;
    if ($line =~ /\Afile ([0-7]{3,4}) (\d{1,9}) (.+)\z/) {
        return { kind => 'file', mode => oct $1, name => $3, content => $self->_bytes($2) };
    }
    die "unreadable entry '$line'\n";
}

sub _line {
    my ($self) = @_;
    my $line = readline $self->{handle};
    die "the bundle ends too early\n" unless defined $line && chomp $line;
    return $line;
}

sub _bytes {
    my ($self, $length) = @_;
    my $content = '';
    my $got = read $self->{handle}, $content, $length + 1;
    die "the bundle ends too early\n" unless defined $got && $got == $length + 1;
    die "a file is longer than it says\n" unless chop $content eq "\n";
    return $content;
}

1;
