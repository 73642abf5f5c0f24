package joblog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/errortext"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/literal"
)

// An out-of-memory that a program catches is no failure: a search for the largest batch makes some on purpose, trainers skip a
// batch, and the log goes on.

const (
	leastPace  = 3       // lines of progress by which a log goes on
	buffered   = 8 << 10 // bytes that a program may have held back, and that stand behind its traceback
	retryNear  = 8       // lines within which a program says that it tries again
	mostCaught = 1 << 10
)

// retries are words by which programs say that they go on.
var retries = literal.NewSet("retry", "recover", "skipping", "reducing", "trying batch", "smaller batch", "lowering", "halving", "batch size to")

// paceWords are those that progress has, with a number behind them or without.
var (
	paceWords = []string{"step", "iter", "iteration", "epoch", "global_step", "loss", "it/s", "s/it"}
	paceSet   = literal.NewSet(paceWords...)
)

// advances tells that a line shows how far a training is.
func advances(text string) (does bool) {
	paceSet.Each(text, len(text), func(i, at int) bool {
		does = strings.Contains(paceWords[i], "/") || isStep(text, at, len(paceWords[i]))
		return !does
	})
	return does
}

// caught is an out-of-memory behind which the log may go on.
type caught struct {
	event  *Event
	traced bool  // behind a traceback, which may be the program's end
	lines  int   // behind it
	bytes  int64 // likewise
	steps  int   // lines of progress
	far    bool  // of which one is beyond what may have been held back
	again  bool  // the program says that it goes on
	last   int64 // line of the last progress
}

// see takes the next line of its rank.
func (c *caught) see(l *errortext.Line) {
	c.bytes += int64(len(l.Text)) + 1
	if c.lines++; c.lines <= retryNear+1 && retries.Any(l.Text) {
		c.again = true
	}
	if l.Number > c.event.Line && advances(l.Text) {
		c.steps++
		c.last = l.Number
		c.far = c.far || c.bytes > buffered
	}
}

// survived tells that the program went on.
func (c *caught) survived() bool {
	return c.again && c.steps > 0 || c.steps >= leastPace && (!c.traced || c.far)
}

// catch watches what follows an out-of-memory of a rank.
func (p *parser) catch(key int, e *Event, traced bool) {
	if len(p.caught[key]) < mostCaught {
		p.caught[key] = append(p.caught[key], &caught{event: e, traced: traced})
	}
}

// see is told of each line of a rank, in order.
func (p *parser) see(key int, l *errortext.Line) {
	for _, c := range p.caught[key] {
		if c.lines <= retryNear || c.steps < leastPace || !c.far {
			c.see(l)
		}
	}
}

// release makes those that were survived notices: the first is told, and how many there were.
func (p *parser) release() {
	var first *caught
	n := 0
	for _, of := range p.caught {
		for _, c := range of {
			if !c.survived() || p.ended(c.event) {
				continue
			}
			n++
			p.Events = slices.DeleteFunc(p.Events, func(e *Event) bool { return e == c.event })
			if first == nil || c.event.Line < first.event.Line {
				first = c
			}
		}
	}
	if first != nil {
		p.notices = append(p.notices, first.notice(n))
	}
}

// ended tells that a launcher saw the rank of an event end behind it.
func (p *parser) ended(of *Event) bool {
	return slices.ContainsFunc(p.Events, func(e *Event) bool {
		return e.class == exit && e.Line > of.Line && (e.Rank < 0 || of.Rank < 0 || e.Rank == of.Rank)
	})
}

// notice is the finding of an out-of-memory that was survived, the first of n.
func (c *caught) notice(n int) finding.Finding {
	f := c.event.found[0]
	f.Title = "memory ran out, and the program went on: " + f.Title
	f.Confidence, f.Line = finding.Low, fmt.Sprintf("line %d", c.event.Line)
	f.Gain = finding.Gain{Text: "batches that are not lost, if it was not a search for the largest"}
	f.Evidence = append(slices.Clone(f.Evidence), finding.Evidence{Name: "goes_on", Value: c.last, Text: fmt.Sprintf("the log goes on with steps behind it, to line %d or further", c.last)})
	if n > 1 {
		f.Evidence = append(f.Evidence, finding.Evidence{Name: "times", Value: n, Text: fmt.Sprintf("it is there %d times", n)})
	}
	f.DisprovedBy = "those lines were held back and printed late, and the program had ended"
	return f
}
