package vetpy

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// What is looked for in the whole source, before it is walked. Regular expressions take ten times as long.

// called finds the calls of a method, with its point, in a source: what it is called on, and what stands behind its bracket.
func called(source, method string, each func(on, args string)) {
	for from := 0; ; {
		i := strings.Index(source[from:], method)
		if i < 0 {
			return
		}
		at := from + i
		from = at + len(method)
		args, ok := strings.CutPrefix(strings.TrimLeft(source[from:], spaces), "(")
		if !ok {
			continue
		}
		begin := at
		for begin > 0 && (isWordByte(source[begin-1]) || strings.IndexByte(".[]", source[begin-1]) >= 0) {
			begin--
		}
		if begin < at {
			each(source[begin:at], strings.TrimLeft(args, spaces))
		}
	}
}

// deleted finds of what a source deletes elements: del x[...].
func deleted(source string, each func(name string)) {
	for {
		_, rest, ok := strings.Cut(source, "del")
		if !ok {
			return
		}
		source = rest
		name := strings.TrimLeft(rest, spaces)
		end := 0
		for end < len(name) && (isWordByte(name[end]) || name[end] == '.') {
			end++
		}
		if len(name) < len(rest) && end > 0 && strings.HasPrefix(strings.TrimLeft(name[end:], spaces), "[") {
			each(name[:end])
		}
	}
}

// mentions tells whether the source has one of some words.
func (w *walker) mentions(words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		has, known := w.words[word]
		if !known {
			has = strings.Contains(w.f.String(), word)
			w.words[word] = has
		}
		return has
	})
}

// hasWord tells whether a text has a word by itself.
func hasWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		at := from + i
		from = at + len(word)
		if (at == 0 || !isWordByte(text[at-1])) && (from == len(text) || !isWordByte(text[from])) {
			return true
		}
	}
}

const spaces = " \t\n\f\r"

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func hasPrefix(s string, any ...string) bool {
	for _, p := range any {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// isSimple tells whether a text is a variable or a field: names with points between.
func isSimple(text string) bool {
	begins := true
	for i := range len(text) {
		switch c := text[i]; {
		case isWordByte(c):
			begins = false
		case c != '.' || begins:
			return false
		default:
			begins = true
		}
	}
	return !begins
}

// pattern is a regular expression, made when it is first asked: the start of the program does not wait for it.
func pattern(form string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) })
}
