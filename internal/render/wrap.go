package render

import "strings"

// Wrap breaks plain text at spaces into lines of at most width columns, where it can: a word that is longer has a line of
// its own. Lines after the first of a paragraph are indented by as many columns. The text's own line ends stay.
func Wrap(s string, width, indent int) string {
	var out []string
	for _, paragraph := range strings.Split(s, "\n") {
		out = append(out, wrapLine(paragraph, width, indent)...)
	}
	return strings.Join(out, "\n")
}

// wrapLine keeps the spaces inside a line: they may be columns.
func wrapLine(s string, width, indent int) []string {
	var lines []string
	line := ""
	for i, word := range strings.Split(s, " ") {
		switch {
		case i == 0:
			line = word
		case Width(line)+1+Width(word) <= width || strings.TrimSpace(line) == "":
			line += " " + word
		default:
			lines = append(lines, strings.TrimRight(line, " "))
			line = spaces(indent) + word
		}
	}
	return append(lines, line)
}
