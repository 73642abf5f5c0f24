package torchcall

import (
	"fmt"
	"regexp"
	"strings"
)

// Text is an answer for people, in paragraphs; lines that begin with spaces are code. It is empty without entries.
func (a Answer) Text() string {
	var b strings.Builder
	for i, e := range a.Entries {
		if i > 0 {
			b.WriteString("\n")
		}
		e.text(&b)
	}
	if len(a.Unshown) > 0 {
		fmt.Fprintf(&b, "\nNo example here has the argument %s: what it does here, go doc of the above says.\n", strings.Join(a.Unshown, ", "))
	}
	return b.String()
}

func (e *Entry) text(b *strings.Builder) {
	as := ""
	if e.SameAs != "" {
		as = ", as " + e.SameAs
	}
	fmt.Fprintf(b, "%s (%s%s)\n", e.Name, e.State, as)
	if e.Reason != "" {
		fmt.Fprintf(b, "%s\n", sentence(e.Reason))
	}
	for _, w := range e.Ways {
		fmt.Fprintf(b, "\n%s\n\n%s\n", w.PyTorch, indented(w.Example))
		if w.Note != "" {
			fmt.Fprintf(b, "\nNote: %s\n", plain(w.Note))
		}
	}
	for _, d := range e.Differences {
		fmt.Fprintf(b, "\nOtherwise: %s: %s in PyTorch, %s here.\n", plain(d.What), plain(d.PyTorch), plain(d.Here))
	}
}

func indented(code string) string { return "    " + strings.ReplaceAll(code, "\n", "\n    ") }

// sentence is a text with its first letter a capital, and a full stop.
func sentence(s string) string {
	s = plain(s)
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)

// plain is Markdown as people read it in a terminal.
func plain(s string) string {
	s = link.ReplaceAllStringFunc(s, func(l string) string {
		m := link.FindStringSubmatch(l)
		file, outside := strings.CutPrefix(m[2], "../")
		if !outside {
			file = "docs/" + file
		}
		return m[1] + " (" + file + ")"
	})
	return strings.ReplaceAll(s, "`", "")
}
