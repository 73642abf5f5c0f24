package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wide are the ranges that a terminal shows in two columns: the East Asian scripts,
// full-width forms and pictographs (the blocks of Unicode's EastAsianWidth.txt that
// are wide as a whole).
var wide = [][2]rune{
	{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0x33ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa4cf},
	{0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6},
	{0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
}

func runeWidth(r rune) int {
	switch {
	case r < ' ' || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	}
	for _, w := range wide {
		if w[0] <= r && r <= w[1] {
			return 2
		}
	}
	return 1
}

// Width returns the terminal columns of s. ANSI colour sequences take none.
func Width(s string) int {
	n := 0
	escape := false
	for _, r := range s {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		default:
			n += runeWidth(r)
		}
	}
	return n
}

// Truncate shortens plain text to at most width columns, the last of them "…" if
// anything was cut.
func Truncate(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n += runeWidth(r); n > width-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// truncateFront is Truncate for what is told apart by its end.
func truncateFront(s string, width int) string {
	cut := Width(s) > width
	for over := Width(s) - width + 1; cut && over > 0 && s != ""; {
		r, n := utf8.DecodeRuneInString(s)
		s, over = s[n:], over-runeWidth(r)
	}
	if cut && width > 0 {
		return "…" + s
	}
	return s
}

// padRight and padLeft fill s with spaces up to width columns.
func padRight(s string, width int) string { return s + spaces(width-Width(s)) }
func padLeft(s string, width int) string  { return spaces(width-Width(s)) + s }

// center puts s in the middle of width columns, without trailing spaces.
func center(s string, width int) string { return spaces((width-Width(s))/2) + s }

func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }
