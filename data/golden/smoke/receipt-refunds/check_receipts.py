"""What has to stay true of receipts."""

from receipts import total

assert total([]) == 0
assert total(["tea 250", "green tea 300"]) == 550
print("receipts are right")
