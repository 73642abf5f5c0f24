package pysyntax

import (
	"bytes"
	"regexp"
)

// Lines that IPython does not give to Python: commands and magics, also where their output is kept, and questions.
var (
	toShell   = regexp.MustCompile(`^([!%?]|[\w., \t\[\]]*[^\S\n]=[ \t]*[!%])`)
	questions = regexp.MustCompile(`^[\w.*%]+\?\??[ \t]*\r?$`)
)

// command makes a pass of a line that is IPython's own, before which nothing has been read but its indent.
func (l *lexer) command() {
	line, _, _ := bytes.Cut(l.src[l.at:l.end], []byte("\n"))
	if !toShell.Match(line) && !questions.Match(line) {
		return
	}
	from := l.at
	for l.at < l.end && l.src[l.at] != '\n' && l.src[l.at] != '\r' {
		if l.src[l.at] != '\\' || !l.join() {
			l.at++
		}
	}
	l.add(kKeyword, from, keywords["pass"])
}
