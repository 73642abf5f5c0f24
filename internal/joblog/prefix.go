package joblog

import (
	"slices"
	"strings"
	"time"
)

// What nearly every line of some log begins with is read by hand: expressions would take most of the time.

// starts is that a text begins with one of some words.
func starts(words ...string) func(string) bool {
	return func(text string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(text, w) })
	}
}

// byteAt is a text's byte, 0 behind its end.
func byteAt(text string, i int) byte {
	if i >= len(text) {
		return 0
	}
	return text[i]
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// digits is how many digits stand at a text's byte i.
func digits(text string, i int) (n int) {
	for digit(byteAt(text, i+n)) {
		n++
	}
	return n
}

// past is i, or behind it if one of some bytes is there.
func past(text string, i int, some string) int {
	if c := byteAt(text, i); c != 0 && strings.IndexByte(some, c) >= 0 {
		return i + 1
	}
	return i
}

// ranked reads "[rank3]: ".
func ranked(word string, take func(o *origin, rank int)) func(*origin, string) int {
	return func(o *origin, text string) int {
		if !strings.HasPrefix(text, word) {
			return 0
		}
		at := past(text, len(word), " ")
		n := digits(text, at)
		if n == 0 || byteAt(text, at+n) != ']' {
			return 0
		}
		take(o, number(text[at:at+n]))
		return past(text, past(text, at+n+1, ":"), " ")
	}
}

// labelled reads " 3: ", as srun writes it, which may be something else.
func labelled(o *origin, text string) int {
	at := len(text) - len(strings.TrimLeft(text, " "))
	n := digits(text, at)
	if n == 0 || n > 5 || !strings.HasPrefix(text[at+n:], ": ") {
		return 0
	}
	o.rank, o.labelled = number(text[at:at+n]), true
	return at + n + 2
}

// hasShape is that a text begins with a form, in which 0 is any digit.
func hasShape(text, form string) bool {
	if len(text) < len(form) {
		return false
	}
	for i := range len(form) {
		if c := text[i]; c != form[i] && (form[i] != '0' || !digit(c)) {
			return false
		}
	}
	return true
}

// dated reads "[2024-05-11 13:11:27,885] ", with or without brackets, zone and what loggers put behind it.
func dated(o *origin, text string) int {
	at := past(text, 0, "[")
	if !hasShape(text[at:], "0000-00-00") || past(text, at+10, " T_") == at+10 || !hasShape(text[at+11:], "00:00:00") {
		return 0
	}
	o.at = clock(text[at:at+10], text[at+11:at+19])
	end := at + 19
	if n := digits(text, end+1); n > 0 && past(text, end, ".,") > end {
		if !o.at.IsZero() {
			o.at.Time = o.at.Add(fraction(text[end+1 : end+1+n]))
		}
		end += 1 + n
	}
	end = zone(text, end)
	end = past(text, past(text, past(text, end, "]"), ":"), " ")
	if behind := past(text, end, "-|"); behind > end {
		end = past(text, behind, " ")
	}
	return end
}

// zone is behind a time's zone, if there is one at i.
func zone(text string, i int) int {
	at := past(text, i, " ")
	switch rest := text[at:]; {
	case strings.HasPrefix(rest, "Z"):
		return at + 1
	case strings.HasPrefix(rest, "UTC"):
		return at + 3
	case hasShape(rest, "+00:00"), hasShape(rest, "-00:00"):
		return at + 6
	case hasShape(rest, "+0000"), hasShape(rest, "-0000"):
		return at + 5
	}
	return i
}

// clock is a date and a time of day, zero where there is no such one.
func clock(date, hour string) stamp {
	n := func(s string) (v int) {
		for i := range len(s) {
			v = 10*v + int(s[i]-'0')
		}
		return v
	}
	y, mo, d, h, mi, s := n(date[:4]), n(date[5:7]), n(date[8:]), n(hour[:2]), n(hour[3:5]), n(hour[6:])
	t := time.Date(y, time.Month(mo), d, h, mi, s, 0, time.UTC)
	if mo < 1 || mo > 12 || t.Day() != d || h > 23 || mi > 59 || s > 59 {
		return stamp{}
	}
	return stamp{Time: t}
}

// ofNCCL reads "node1:3063:3066 [0] ".
func ofNCCL(o *origin, text string) int {
	colon := strings.IndexByte(text, ':')
	if colon < 1 || !isName(text[:colon]) {
		return 0
	}
	at := colon
	for range 2 {
		n := digits(text, at+1)
		if n == 0 || byteAt(text, at) != ':' {
			return 0
		}
		at += 1 + n
	}
	n := digits(text, min(at+2, len(text)))
	if n == 0 || !strings.HasPrefix(text[at:], " [") || !strings.HasPrefix(text[at+2+n:], "] ") {
		return 0
	}
	o.node = text[:colon]
	return at + n + 4
}

// isName tells that a text has only what names of hosts have.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '_' && c != '.' && c != '-' && !digit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

func glogged(text string) bool {
	return strings.IndexByte("EWIF", byteAt(text, 1)) >= 0 && (digit(byteAt(text, 2)) || byteAt(text, 2) == ' ')
}

func numbered(text string) bool { return digit(byteAt(text, 1)) && byteAt(text, 8) == ':' }

var levels = []string{"INFO", "WARNING", "WARN", "ERROR", "DEBUG", "CRITICAL"}

// leveled reads "[INFO] [launch.py:434:main] " or "INFO: ".
func leveled(_ *origin, text string) int {
	at := past(text, 0, "[")
	for _, level := range levels {
		if !strings.HasPrefix(text[at:], level) {
			continue
		}
		end := past(text, at+len(level), "]")
		behind := past(text, end, ": \t")
		if behind == end {
			continue
		}
		for end = behind; byteAt(text, end) == ' '; {
			end++
		}
		return end + caller(text[end:])
	}
	return 0
}

// caller is how long "[launch.py:434:main] " is, if a text begins with such.
func caller(text string) int {
	end := strings.Index(text, "] ")
	if end < 1 || text[0] != '[' {
		return 0
	}
	file, rest, _ := strings.Cut(text[1:end], ":")
	line, function, _ := strings.Cut(rest, ":")
	if file == "" || line == "" || function == "" || digits(line, 0) != len(line) || !isName(file) || strings.Contains(file, "-") || !isName(function) || strings.ContainsAny(function, ".-") {
		return 0
	}
	return end + len("] ")
}

func ofRay(text string) bool { return strings.Contains(text, "pid=") || strings.Contains(text, "PID=") }

func named(text string) bool {
	i := strings.Index(text, ": ")
	return i > 0 && strings.IndexByte(text[:i], ' ') < 0 && strings.ContainsAny(text[:i], "0123456789")
}
