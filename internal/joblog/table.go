package joblog

import (
	"regexp"
	"strings"
)

// torchrun ends with a table of what failed: blocks of "time : …", "host : …", "rank : 3 (local_rank: 3)", "exitcode : -9 (pid:
// …)", "traceback : …", the first of which it calls the root cause.
const tableHead = "Root Cause (first observed failure)"

var (
	localRank = regexp.MustCompile(`^(\d+) \(local_rank: (\d+)\)`)
	exitCode  = regexp.MustCompile(`^(-?\d+)`)
)

// table reads a line of torchrun's table, if it is one.
func (p *parser) table(text string) bool {
	text = strings.TrimLeft(text, "> \t")
	if strings.HasPrefix(text, tableHead) {
		p.closeBlock()
		p.first, p.launcher = true, true
		p.marks++
		return true
	}
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		return false
	}
	name, value = strings.TrimRight(name, " "), strings.TrimPrefix(value, " ")
	switch name {
	case "time":
		o, _ := originOf(value + " ")
		if o.at.IsZero() {
			return false
		}
		p.closeBlock()
		p.block = &Event{class: exit, Name: "elastic-table", Rank: nobody, Local: nobody, File: p.File, At: o.at}
		return true
	case "host", "rank", "exitcode", "error_file", "traceback":
		if p.block != nil {
			p.field(name, strings.TrimSpace(value))
		}
		return p.block != nil
	}
	return false
}

// field takes a field of a block.
func (p *parser) field(name, value string) {
	e := p.block
	switch name {
	case "host":
		e.Node = value
	case "rank":
		if m := localRank.FindStringSubmatch(value); m != nil {
			e.Rank, e.Local = number(m[1]), number(m[2])
			p.Ranks[e.Rank] = true
		}
	case "exitcode":
		if m := exitCode.FindStringSubmatch(value); m != nil {
			e.Exit = exitStatus(m[1])
		}
	case "traceback":
		e.Text = value
		p.closeBlock()
	}
}

func exitStatus(digits string) int {
	sign := 1
	if strings.HasPrefix(digits, "-") {
		sign, digits = -1, digits[1:]
	}
	return sign * number(digits)
}

// closeBlock keeps the block that was read.
func (p *parser) closeBlock() {
	if e := p.block; e != nil && e.Exit != 0 {
		e.Line = p.Lines
		if !p.first {
			e.Late = true // torchrun saw another one before
		}
		p.add(e)
	}
	p.block, p.first = nil, false
}
