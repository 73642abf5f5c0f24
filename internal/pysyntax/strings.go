package pysyntax

import "bytes"

// quoted makes a string, whose prefix has been read.
func (l *lexer) quoted(from int, prefix string) {
	l.literal(prefix, nil)
	l.add(kString, from, "")
}

// literal passes over a string from its quotes on. Of f-strings it tells where fields are; field gets their begin and end.
func (l *lexer) literal(prefix string, field func(from, to int)) {
	open := l.at
	quote := l.src[open : open+1]
	if t := l.src[open:l.end]; len(t) >= 3 && t[1] == t[0] && t[2] == t[0] {
		quote = t[:3]
	}
	l.at += len(quote)
	formatted := false
	for i := range len(prefix) {
		formatted = formatted || prefix[i]|0x20 == 'f' || prefix[i]|0x20 == 't'
	}
	for {
		if l.at >= l.end {
			l.fail(open, "the string has no end")
		}
		switch c := l.src[l.at]; {
		case bytes.HasPrefix(l.src[l.at:l.end], quote):
			l.at += len(quote)
			return
		case c == '\\':
			l.escape(prefix, formatted)
		case c == '\n' || c == '\r':
			if len(quote) == 1 {
				l.fail(open, "the string has no end on its line")
			}
			l.newline()
		case formatted && c == '{':
			l.replacement(open, quote, field)
		default:
			l.at++
		}
	}
}

// escape passes over a backslash and what it escapes. Of \N{NAME} in an f-string the braces hold no field.
func (l *lexer) escape(prefix string, formatted bool) {
	l.at++
	if l.at >= l.end {
		return
	}
	c := l.src[l.at]
	raw := len(prefix) == 2 || prefix == "r" || prefix == "R"
	switch {
	case c == '\n' || c == '\r':
		l.newline()
	case formatted && (c == '{' || c == '}'):
	case formatted && !raw && c == 'N' && l.at+1 < l.end && l.src[l.at+1] == '{':
		for l.at < l.end && l.src[l.at] != '}' && l.src[l.at] != '\n' {
			l.at++
		}
	default:
		l.at++
	}
}

// maxFields is how deep f-strings and formats stand within each other.
const maxFields = 150

// replacement passes over a field of an f-string, or two braces.
func (l *lexer) replacement(open int, quote []byte, field func(from, to int)) {
	if l.at+1 < l.end && l.src[l.at+1] == '{' {
		l.at += 2
		return
	}
	l.depth++
	defer func() { l.depth-- }()
	if l.depth > maxFields {
		l.fail(l.at, "fields are nested more than %d deep", maxFields)
	}
	l.at++
	from := l.at
	to := l.value(open)
	if field != nil {
		field(from, to)
	}
	if l.src[l.at] == '!' {
		for l.at < l.end && l.src[l.at] != ':' && l.src[l.at] != '}' {
			l.at++
		}
	}
	if l.at < l.end && l.src[l.at] == ':' {
		l.format(open, quote, field)
	}
	if l.at >= l.end || l.src[l.at] != '}' {
		l.fail(open, "a field of the string has no end")
	}
	l.at++
}

// format passes over what stands behind the colon of a field.
func (l *lexer) format(open int, quote []byte, field func(from, to int)) {
	l.at++
	for l.at < l.end && l.src[l.at] != '}' {
		switch c := l.src[l.at]; {
		case bytes.HasPrefix(l.src[l.at:l.end], quote):
			l.fail(open, "a field of the string has no end")
		case c == '{':
			l.replacement(open, quote, field)
		case c == '\n' || c == '\r':
			l.newline()
		case c == '\\':
			l.escape("", true)
		default:
			l.at++
		}
	}
}

// value passes over the expression of a field, and gives its end.
func (l *lexer) value(open int) (to int) {
	nested := 0
	for l.at < l.end {
		c := l.src[l.at]
		switch {
		case c == '(' || c == '[' || c == '{':
			nested++
		case nested > 0 && (c == ')' || c == ']' || c == '}'):
			nested--
		case nested == 0 && (c == '}' || c == ':' || c == '!' && !(l.at+1 < l.end && l.src[l.at+1] == '=')):
			return l.at
		case c == '!' && l.at+1 < l.end && l.src[l.at+1] == '=':
			l.at++
		case c == '#':
			for l.at < l.end && l.src[l.at] != '\n' {
				l.at++
			}
			continue
		case c == '\n' || c == '\r':
			l.newline()
			continue
		case c == '"' || c == '\'':
			l.literal(l.prefix(), nil)
			continue
		}
		l.at++
	}
	l.fail(open, "a field of the string has no end")
	return 0
}

// prefix is that of a string whose quote is next.
func (l *lexer) prefix() string {
	from := l.at
	for from > 0 && isLetter(l.src[from-1]) {
		from--
	}
	if isPrefix(l.text[from:l.at]) {
		return l.text[from:l.at]
	}
	return ""
}
