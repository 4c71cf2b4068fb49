"""Text that others wrote, made fit to be shown on a terminal or in a log; no rows and no layout here."""

# Control characters, and the marks that reorder or hide text on a terminal.
_HIDDEN = {
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
} - {0x0A}
_ESCAPES = {code: f"\\u{code:04x}" for code in _HIDDEN} | {
    code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)
}


def plain_text(text: str) -> str:
    """``text`` with control, bidirectional and surrogate code points shown as escapes; line feeds stay."""
    return text.translate(_ESCAPES)


def one_line(text: str) -> str:
    """``plain_text`` in which a line feed is an escape too: no value can begin a line of its own."""
    return plain_text(text).replace("\n", "\\n")


def shortened(text: str, longest: int = 600) -> str:
    """``text`` cut to a length that does not hide what stands beside it, with how much was cut."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} characters more)"
