// Package joblog reads the logs of jobs of many ranks, as launchers, schedulers, NCCL and PyTorch's flight recorder write
// them, and finds the first failure: which rank, on which node, when, and what it means: restart here, drain this node, or
// fix the program. What fails later is its consequence.
package joblog

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// nobody is the rank of a line that does not say.
const nobody = -1

// origin is where a line comes from, as its prefixes say.
type origin struct {
	rank     int
	inGroup  int  // rank in a process group, which in one of all ranks is the rank
	local    int  // rank on its node
	labelled bool // rank is a number before a colon, which may be something else
	node     string
	at       stamp
}

// stamp is a time as a log prints it. Some have no year.
type stamp struct {
	time.Time
	yearless bool
}

// before compares two times as far as both tell; known is false where one does not.
func (s stamp) before(t stamp) (before, known bool) {
	if s.IsZero() || t.IsZero() {
		return false, false
	}
	a, b := s.Time, t.Time
	if s.yearless || t.yearless {
		a, b = leap(a), leap(b)
	}
	return a.Before(b), true
}

// leap is t in a year that has all days.
func leap(t time.Time) time.Time {
	return time.Date(2000, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// String is the time of day, which is what people look for.
func (s stamp) String() string {
	switch {
	case s.IsZero():
		return ""
	case s.yearless:
		return s.Format("01-02 15:04:05")
	}
	return s.Format("2006-01-02 15:04:05")
}

// prefix is a form of what launchers and loggers put before a line.
type prefix struct {
	begins string                               // with one of these bytes, so that most lines are passed over
	take   func(o *origin, text string) (n int) // how long it is; 0 where the text has another
}

// expression is a prefix that a regular expression tells, where may does not rule it out.
func expression(may func(string) bool, form string, take func(o *origin, m []string)) func(*origin, string) int {
	re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) })
	return func(o *origin, text string) int {
		if !may(text) {
			return 0
		}
		m := re().FindStringSubmatch(text)
		if m == nil {
			return 0
		}
		take(o, m)
		return len(m[0])
	}
}

const letters = "abcdefghijklmnopqrstuvwxyz"

var prefixes = []prefix{
	{"[", ranked("[rank", func(o *origin, n int) { o.rank = n })},
	{"[", ranked("[Rank ", func(o *origin, n int) { o.inGroup = n })},
	{"[", expression(starts("[1,"), `^\[1,(\d+)\]<std(?:out|err)>: ?`, func(o *origin, m []string) { o.rank = number(m[1]) })},
	{"[", expression(starts("[pod/"), `^\[pod/([\w.-]+)/[\w.-]+\] ?`, func(o *origin, m []string) { o.node = m[1] })},
	{"[", expression(glogged, `^\[([EWIF])(\d{1,2})(\d{2}) (\d\d:\d\d:\d\d)\.(\d+) [\w.]+:\d+\] ?`, func(o *origin, m []string) { o.at = dayless(m[2], m[3], m[4], m[5]) })},
	{"[", expression(glogged, `^\[[EWIF] [\w.]+\.cpp:\d+\] ?`, func(*origin, []string) {})},
	{"[", expression(starts("[default", "[trainer", "[worker", "[train", "[role"), `^\[(?:default|trainer|worker|train|role)_?(\d+)\]: ?`, func(o *origin, m []string) { o.local = number(m[1]) })},
	{"[2012", dated},
	{"EWIF", expression(numbered, `^[EWIF](\d\d)(\d\d) (\d\d:\d\d:\d\d)\.(\d+) +\d+ (?:[\w./-]+:\d+\] ?)?`, func(o *origin, m []string) { o.at = dayless(m[1], m[2], m[3], m[4]) })},
	{"[IWEDC", leveled},
	{"(", expression(ofRay, `^\(\w+(?:\([^)]*\))? (?:pid|PID)=\d+(?:, ip=([\w.:]+))?\) ?`, func(o *origin, m []string) { o.node = m[1] })},
	{" 0123456789", labelled},
	{letters, expression(named, `^([a-z][a-z0-9-]*\d[a-z0-9-]*(?:\.[a-z0-9.-]+)?): `, func(o *origin, m []string) {
		if !strings.HasSuffix(m[1], ".py") {
			o.node = m[1]
		}
	})},
	{letters + "ABCDEFGHIJKLMNOPQRSTUVWXYZ", ofNCCL},
}

// mostPrefixes are taken off a line: a scheduler's, a launcher's, a logger's.
const mostPrefixes = 6

// originOf takes the prefixes off a line.
func originOf(line string) (o origin, text string) {
	o.rank, o.inGroup, o.local = nobody, nobody, nobody
	text = line
	for range mostPrefixes {
		if text == "" {
			break
		}
		n := 0
		for i := range prefixes {
			p := &prefixes[i]
			if strings.IndexByte(p.begins, text[0]) < 0 {
				continue
			}
			if n = p.take(&o, text); n > 0 {
				break
			}
		}
		if n == 0 {
			break
		}
		text = text[n:]
	}
	if o.rank < 0 {
		o.rank = o.inGroup
	}
	return o, text
}

// number is a small whole number.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n > 1<<20 {
		return nobody
	}
	return n
}

// dayless is a time without a year.
func dayless(month, day, clock, part string) stamp {
	if len(month) == 1 {
		month = "0" + month
	}
	t, err := time.Parse("2006-01-02 15:04:05", "2000-"+month+"-"+day+" "+clock)
	if err != nil {
		return stamp{}
	}
	return stamp{Time: t.Add(fraction(part)), yearless: true}
}

// fraction is digits behind a point as time.
func fraction(digits string) time.Duration {
	n, each := time.Duration(0), time.Second
	for i := 0; i < len(digits) && each > 1; i++ {
		each /= 10
		n += time.Duration(digits[i]-'0') * each
	}
	return n
}

var (
	rankInName = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:rank|worker|proc|task|gpu)[-_. ]?(\d{1,5})(?:\D|$)`)
	rankFolder = regexp.MustCompile(`[/\\](\d{1,5})[/\\]std(?:out|err)(?:\.log)?$`)
	rankAtEnd  = regexp.MustCompile(`[-_.](\d{1,5})(?:\.(?:log|out|err|txt|json|pickle))?(?:\.gz)?$`)
	nodeInName = regexp.MustCompile(`(?i)(?:^|[/\\_.])((?:node|host|worker-|gpu|dgx)[-_]?[a-z]{0,3}\d[\w-]*?)(?:[/\\_.]|[-_.]?rank|$)`)
)

// rankOf is the rank that a file's name says, and nobody where it says none.
func rankOf(name string) int {
	for _, p := range []*regexp.Regexp{rankFolder, rankInName, rankAtEnd} {
		if all := p.FindAllStringSubmatch(name, -1); all != nil {
			return number(all[len(all)-1][1])
		}
	}
	return nobody
}

// nodeOf is the node that a file's name says, or empty.
func nodeOf(name string) string {
	if m := nodeInName.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}
