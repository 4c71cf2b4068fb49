test "$(sh greet.sh Ada)" = "Hello, Ada!" || exit 1
test "$(sh greet.sh)" = "Hello, world!"
