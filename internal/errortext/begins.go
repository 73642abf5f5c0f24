package errortext

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// begins are, in lower case, what the texts of a pattern begin with, or nil where one may begin with anything. Patterns that
// ignore the case are slow to run over a window of lines, and nearly none of them begins in a given line.
func begins(re *regexp.Regexp) []string {
	parsed, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return nil
	}
	return prefixes(parsed.Simplify())
}

func prefixes(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return prefixes(re.Sub[0])
	case syntax.OpConcat:
		return prefixes(re.Sub[0])
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			some := prefixes(sub)
			if some == nil {
				return nil
			}
			all = append(all, some...)
		}
		return all
	}
	return nil
}

// mayBegin tells whether the row's text may begin within the first own bytes of a text, which is in lower case.
func (r *Row) mayBegin(lower string, own int) bool {
	return r.begins == nil || slices.ContainsFunc(r.begins, func(b string) bool {
		return strings.Contains(lower[:min(len(lower), own+len(b))], b)
	})
}

// lowered is a text with ASCII's letters in lower case; every byte stays in its place.
func lowered(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}
