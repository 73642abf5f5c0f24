package joblog

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/errortext"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/literal"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Event is a line by which something ended or failed.
type Event struct {
	class   class
	Name    string // of the sign or the text
	Rank    int    // below 0: unknown
	Local   int    // on its node; below 0: unknown
	Node    string
	Peer    string // that a network error names
	At      stamp
	After   stamp // the last time that its log has before it
	File    string
	Line    int64
	Text    string
	Exit    int // status, or minus the signal
	Late    bool
	Missing []int // ranks that it says are missing
	Site    string

	labelled bool
	says     string // what it means, where a sign knows
	fix      string
	found    []finding.Finding
	figures  map[string]any
}

// Log is what a text has of a job.
type Log struct {
	File   string
	Lines  int64
	World  int          // ranks of the job as it says itself; 0: unknown
	Ranks  map[int]bool // that wrote
	Events []*Event
	Hangs  []*Hang
	Growth *errortext.Growth

	numbers  errortext.Numbers
	notices  []finding.Finding
	launcher bool // a line of a launcher or scheduler was there
	labels   int64
	nccl     int64 // lines of NCCL
	last     stamp // time that was read
	steps    int64 // lines with the number of a step
	marks    int64 // lines that show that it is a log of a training at all
	net      transport
}

// Reader reads texts. Sizes are of the model, where they are known.
type Reader struct{ Sizes errortext.Sizes }

// fewOdd control characters say nothing of how short a text is.
const fewOdd = 8

// Is tells that a file begins as text does: which, shows when it is read.
func Is(head []byte) bool {
	if len(head) == 0 || bytes.HasPrefix(head, []byte("\x80")) {
		return false
	}
	odd := 0
	for _, c := range head {
		if c == 0 || c < ' ' && !bytes.ContainsRune([]byte("\t\n\r\f\b\x1b"), rune(c)) {
			odd++
		}
	}
	return odd*50 <= len(head)+50*fewOdd
}

const (
	stepLines    = 20   // a log of a training has a step in one of so many lines
	mostEvents   = 4096 // of a log, beyond which consequences are only counted
	mostScanners = 4096 // ranks of which each is read for itself
)

// Diagnose reads a text: one error, the log of a rank, or that of a whole job.
func (d Reader) Diagnose(ctx context.Context, name string, r io.Reader) (*finding.Report, error) {
	l, lines, err := d.read(ctx, name, r)
	if err != nil {
		return nil, err
	}
	report := l.report()
	report.Notes = lines.Notes()
	if len(report.Findings) == 0 && l.marks == 0 {
		return nil, cmp.Or(lines.Err(), errortext.ErrUnknown)
	}
	return report, nil
}

// read reads a text to its end, or to where it can be read.
func (d Reader) read(ctx context.Context, name string, r io.Reader) (*Log, *errortext.Lines, error) {
	l := &Log{File: name, Ranks: map[int]bool{}, Growth: &errortext.Growth{}}
	lines := errortext.NewLines(r)
	p := &parser{Log: l, sizes: d.Sizes, scanners: map[int]*errortext.Scanner{}, caught: map[int][]*caught{}}
	for {
		text, n, ok := lines.Next()
		if !ok {
			break
		}
		p.line(text, n)
		l.Lines = n
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	p.end()
	return l, lines, nil
}

// parser reads the lines of a log.
type parser struct {
	*Log
	sizes    errortext.Sizes
	scanners map[int]*errortext.Scanner // by rank: lines of ranks are mixed
	block    *Event                     // of torchrun's table, that is read
	first    bool                       // the block is the one that it calls the root cause
	caught   map[int][]*caught          // as scanners
	may      []int                      // signs whose word the line has
	size     bool                       // it has a word of a job's size
	step     bool                       // it tells its step
}

// line reads one.
func (p *parser) line(raw string, n int64) {
	o, text := originOf(raw)
	if o.labelled {
		p.labels++
	}
	if !o.at.IsZero() {
		p.last = o.at
	}
	if o.rank >= 0 && !o.labelled {
		p.Ranks[o.rank] = true
		p.marks++
	}
	p.Growth.Add(text)
	p.numbers.Add(text, n)
	p.look(text)
	p.facts(raw, text, &o)
	if p.table(text) || p.watchdog(text, n, o) || p.sign(text, n, o) {
		return
	}
	p.scanner(o).Add(errortext.Line{Number: n, Text: text, Time: o.at.Time, Node: o.node, Rank: o.rank})
}

// scanner is the one of a rank.
func (p *parser) scanner(o origin) *errortext.Scanner {
	key := o.rank
	if key < 0 && o.local >= 0 {
		key = -2 - o.local
	}
	s := p.scanners[key]
	if s == nil {
		if len(p.scanners) == mostScanners {
			return p.scanners[firstKey(p.scanners)]
		}
		s = &errortext.Scanner{}
		labelled, local := o.labelled, o.local
		s.Found = func(m *errortext.Match) { p.text(m, key, local, labelled) }
		s.Passed = func(l *errortext.Line) { p.see(key, l) }
		p.scanners[key] = s
	}
	return s
}

func firstKey(m map[int]*errortext.Scanner) (key int) {
	for key = range m {
		break
	}
	return key
}

// text takes an error text that was found.
func (p *parser) text(m *errortext.Match, key, local int, labelled bool) {
	found := errortext.Judge(m, p.sizes)
	if len(found) == 0 {
		return
	}
	p.marks++
	e := &Event{Name: m.Row.Name, Rank: m.Line.Rank, Local: local, Node: m.Line.Node, At: stamp{Time: m.Line.Time, yearless: m.Line.Time.Year() == 2000}, File: p.File, Line: m.Line.Number,
		Text: render.Truncate(strings.TrimSpace(m.Line.Text), 200), Site: m.Site(), labelled: labelled, found: found, figures: errortext.Figures(m), class: program}
	switch {
	case m.Row.Class == errortext.Notice:
		p.notices = append(p.notices, found...)
		return
	case m.Row.Name == errortext.Unnamed.Name && followed.MatchString(m.Line.Text):
		e.class = consequence
	case m.Row.Class != "":
		e.class = ofText[m.Row.Class]
	}
	p.add(e)
	if m.OOM != nil || m.Row.Rule == "R11" {
		p.catch(key, e, len(m.Frames) > 0)
	}
}

// add keeps an event.
func (p *parser) add(e *Event) {
	e.After = p.last
	if len(p.Events) < mostEvents || e.class < hang && len(p.Events) < 2*mostEvents {
		p.Events = append(p.Events, e)
	}
}

// Words by which lines show what job it is, beside the words of signs.
var (
	sizeWords = []string{"world", "nranks", "member: ", "master_addr", "rdzv", "nodes"}
	stepWords = []string{"step", "iter", "iteration", "epoch", "global_step"}
)

// wordsOf are the words of signs, sizes and steps, in this order.
type wordsOf struct {
	set   *literal.Set
	words []string
	signs []int // of the first words
}

var known = sync.OnceValue(func() *wordsOf {
	var k wordsOf
	for i := range signs {
		for w := range strings.SplitSeq(signs[i].word, "|") {
			k.words, k.signs = append(k.words, w), append(k.signs, i)
		}
	}
	k.words = slices.Concat(k.words, sizeWords, stepWords)
	k.set = literal.NewSet(k.words...)
	return &k
})

// look finds the words that a line has.
func (p *parser) look(text string) {
	p.may, p.size, p.step = p.may[:0], false, false
	k := known()
	k.set.Each(text, len(text), func(i, at int) bool {
		switch {
		case i < len(k.signs):
			if strings.HasPrefix(text[at:], k.words[i]) {
				p.may = append(p.may, k.signs[i])
			}
		case i < len(k.signs)+len(sizeWords):
			p.size = true
		default:
			p.step = p.step || isStep(text, at, len(k.words[i]))
		}
		return true
	})
}

// isStep tells that a word of n bytes stands by itself and has a number behind it.
func isStep(text string, at, n int) bool {
	behind := text[at+n:]
	if at > 0 && literal.InWord(text[at-1]) || behind == "" || literal.InWord(behind[0]) {
		return false
	}
	return digit(byteAt(strings.TrimLeft(behind[past(behind, 0, "'\""):], " \t:=[("), 0))
}

// sign looks for a line of a launcher, a scheduler or NCCL.
func (p *parser) sign(text string, n int64, o origin) bool {
	slices.Sort(p.may)
	for _, i := range slices.Compact(p.may) {
		s := &signs[i]
		m := s.pattern.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		e := &Event{class: s.class, Name: s.name, Rank: o.rank, Local: o.local, Node: o.node, At: o.at, File: p.File, Line: n, Text: render.Truncate(text, 200), labelled: o.labelled, says: s.says, fix: s.fix}
		if s.take != nil {
			s.take(e, m)
		}
		p.launcher = p.launcher || s.class == exit || s.class == outside || s.class == consequence
		p.marks++
		p.add(e)
		return true
	}
	return false
}

var (
	worldSize  = regexp.MustCompile(`(?i)\bworld[_ ]?size['"]?\s*[=:]\s*(\d+)|\bnranks (\d+)\b|MEMBER: \d+/(\d+)|\bWORLD_SIZE=(\d+)`)
	rankOfNode = regexp.MustCompile(`\brank (\d+) nranks \d+ cudaDev`)
)

// facts takes what lines say of the job: its size, that NCCL is there, that it trains.
func (p *parser) facts(raw, text string, o *origin) {
	if strings.Contains(raw, "NCCL") && (strings.Contains(raw, "NCCL INFO") || strings.Contains(raw, "NCCL WARN") || strings.Contains(raw, "ProcessGroupNCCL.cpp")) {
		p.nccl++
		p.marks++
		p.net.add(text, o.node)
		if strings.Contains(text, " nranks ") {
			if m := rankOfNode.FindStringSubmatch(text); m != nil {
				p.Ranks[number(m[1])] = true
			}
		}
	}
	if p.size {
		p.net.meets(text)
		if m := worldSize.FindStringSubmatch(text); m != nil {
			p.World = max(p.World, number(cmp.Or(m[1], m[2], m[3], m[4])))
		}
	}
	if p.marks == 0 && p.step {
		p.steps++
	}
}

// end is behind the last line.
func (p *parser) end() {
	keys := make([]int, 0, len(p.scanners))
	for k := range p.scanners {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		p.scanners[k].Flush()
	}
	p.closeBlock()
	p.release()
	if p.steps*stepLines >= p.Lines {
		p.marks += p.steps // a text that mentions a step now and then is none
	}
	sorting.By(p.Events, func(a, b *Event) int { return cmp.Compare(a.Line, b.Line) })
	p.unlabel()
}

// unlabel forgets ranks that were numbers before a colon where most lines have none.
func (p *parser) unlabel() {
	labels := p.labels*2 >= p.Lines && p.labels > 1
	for _, e := range p.Events {
		switch {
		case e.labelled && !labels:
			e.Rank = nobody
		case e.labelled:
			p.Ranks[e.Rank] = true
			p.launcher = true
		}
	}
}
