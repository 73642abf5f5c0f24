package render

import (
	"fmt"
	"html"
	"strings"
	"unicode"
)

// HTML writes a page. See docs/why.md for why this is no html/template.
type HTML struct{ strings.Builder }

// Markup is a text that is HTML already.
type Markup string

// Add writes a piece of the page. Operands are numbers, Markup, or texts of others, which it escapes; formats are our own.
func (h *HTML) Add(format string, operands ...any) {
	for i, t := range operands {
		switch t.(type) {
		case int, Markup:
		default:
			operands[i] = html.EscapeString(visible(fmt.Sprint(t)))
		}
	}
	fmt.Fprintf(h, format, operands...)
}

// Plain is a text of others in one line, without what moves the cursor of a terminal or turns the direction of writing.
func Plain(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(visible(s))
}

// visible is a text without what moves a cursor, but for lines and tabs, or turns the direction of writing.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
