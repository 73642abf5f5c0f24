package errortext

import (
	"html"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/literal"
)

// Line is a line of a text, and what is known of where it comes from.
type Line struct {
	Number int64
	Text   string
	Time   time.Time // zero: unknown
	Node   string
	Rank   int // below 0: unknown
}

// Frame is a row of a Python traceback.
type Frame struct {
	File, Func string
	Line       int
}

// String is the frame as people write it.
func (f Frame) String() string {
	return path.Base(strings.ReplaceAll(f.File, `\`, "/")) + ":" + strconv.Itoa(f.Line)
}

// library tells that a frame is not of the program itself.
func (f Frame) library() bool {
	for _, dir := range []string{"site-packages", "dist-packages", "/lib/python3", `\Lib\`, "<frozen", "/torch/", "/deepspeed/"} {
		if strings.Contains(f.File, dir) {
			return true
		}
	}
	return f.File == "<string>"
}

// Match is a text that was found.
type Match struct {
	Row    *Row
	Line   Line
	Groups []string // what the pattern's parentheses held, without spaces
	Frames []Frame  // of the traceback before it, outermost first
	OOM    *OOM     // what an out-of-memory says, else nil
	AMD    bool     // the card is AMD's
}

// Site is the program's own line that the traceback ends in, or empty.
func (m *Match) Site() string {
	for _, f := range slices.Backward(m.Frames) {
		if !f.library() {
			return f.String()
		}
	}
	return ""
}

// within tells that a frame of the traceback is in a function or a file that has one of the words in its name.
func (m *Match) within(words ...string) bool {
	return slices.ContainsFunc(m.Frames, func(f Frame) bool {
		name := strings.ToLower(f.File + " " + f.Func)
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	})
}

const (
	ahead      = 14 // lines over which a text may be wrapped
	mostFrames = 64 // of a traceback, of which the innermost are kept
	mostAhead  = 6 << 10
)

// Scanner finds texts among the lines of one process. Lines are looked at when those behind them are there, or at Flush.
type Scanner struct {
	Found  func(*Match)
	Passed func(*Line) // is told of each line behind what was found in it; may be nil
	window []waiting
	passed int // of the window, that were looked at
	skip   int // lines of the window that are part of a text that was found
	frames []Frame
	room   []literal.Candidate
	amd    bool // a line was of AMD's stack
}

// waiting is a line whose turn comes.
type waiting struct {
	Line
	squeezed *string // as squeeze has it, if that was asked for
}

// Add takes the next line.
func (s *Scanner) Add(l Line) {
	s.window = append(s.window, waiting{Line: l})
	if len(s.window)-s.passed > ahead {
		s.first()
	}
}

// Flush looks at the last lines.
func (s *Scanner) Flush() {
	for len(s.window) > s.passed {
		s.first()
	}
}

// first looks at the first line of the window, and lets it go.
func (s *Scanner) first() {
	l := &s.window[s.passed].Line
	matters, traces := tokens(l.Text)
	s.amd = s.amd || matters && amdWords.Any(l.Text)
	if traces {
		s.traceback(l.Text)
	}
	switch {
	case s.skip > 0:
		s.skip--
	case matters:
		s.match(*l)
	}
	if s.Passed != nil {
		s.Passed(l)
	}
	if s.passed++; s.passed > 2*ahead {
		n := copy(s.window, s.window[s.passed:])
		clear(s.window[n:])
		s.window, s.passed = s.window[:n], 0
	}
}

var frameLine = regexp.MustCompile(`File "([^"]+)", line (\d+)(?:, in (\S+))?|^[│|>\s]*([^\s:"]+\.py):(\d+) in (\S+)`)

// traceback keeps the frames of the traceback that is under way.
func (s *Scanner) traceback(text string) {
	if strings.Contains(text, "Traceback (most recent call last)") {
		s.frames = nil
		return
	}
	if !(strings.Contains(text, "File \"") && strings.Contains(text, "\", line ")) && !(strings.Contains(text, ".py:") && strings.Contains(text, " in ")) {
		return
	}
	m := frameLine.FindStringSubmatch(text)
	if m == nil {
		return
	}
	f := Frame{File: m[1], Func: m[3]}
	number := m[2]
	if m[4] != "" {
		f.File, number, f.Func = m[4], m[5], m[6]
	}
	f.Line, _ = strconv.Atoi(number)
	if len(s.frames) == mostFrames {
		s.frames = slices.Delete(s.frames, 0, 1)
	}
	s.frames = append(s.frames, f)
}

// words are what lines that matter have one of. All others are passed over unread.
var words = []string{"error", "memory", "cuda", "nccl", "cudnn", "cublas", "nvml", "nvidia", "xpu", "mps", "killed", "assert", "fault", "expected", "loss scale", "device", "worker",
	"xid", "bus", "tensor", "no space left", "too many open", "capability", "exhausted", "tried to", "exception", "shapes cannot", "size mismatch", "batch_size (", "size of", "channels", "state_dict", "weights only", "inplace", "backward through",
	"requires_grad", "require grad", "scalar outputs", "out of resource", "launch", "flashattention", "glibc", "cxxabi", "numpy", "is_available", "list_physical", "hip", "rocm", "rocblas", "miopen", "amdgpu", "unsupported global", "find_unused", "_dynamo hit"}

// traced are what lines of tracebacks have one of.
var traced = []string{"traceback (most", "file \"", ".py:"}

var tokenSet = sync.OnceValue(func() *literal.Set { return literal.NewSet(slices.Concat(words, traced)...) })

// tokens tells whether a line may have a text that is known, or a row of a traceback.
func tokens(text string) (matters, traces bool) {
	tokenSet().Each(text, len(text), func(word, _ int) bool {
		if word < len(words) {
			matters = true
		} else {
			traces = true
		}
		return !matters || !traces
	})
	return matters, traces
}

// match asks every row whether its text begins in this line.
func (s *Scanner) match(l Line) {
	own := len(s.window[s.passed].squeeze())
	s.room = table().Candidates(s.room[:0], s.squeezed(own+table().Longest()), own)
	if len(s.room) > 0 && s.known(l) {
		return
	}
	if m := s.exception(l); m != nil {
		s.Found(m)
	}
}

// known asks the rows that may begin.
func (s *Scanner) known(l Line) bool {
	text := s.squeezed(mostAhead)
	i, at := table().Find(s.room, text, literal.Lower(text))
	if at == nil {
		return false
	}
	row := &rows[i]
	m := &Match{Row: row, Line: l, Groups: groups(text, at), Frames: slices.Clone(s.frames), AMD: s.amd || amdWords.Any(text)}
	end := at[1]
	if row.pytorch {
		o, n := parseOOM(text[at[0]:])
		m.OOM, end = o, max(end, at[0]+n)
	}
	s.taken(end)
	s.Found(m)
	return true
}

// taken passes over the lines that a text goes on in, whose first end bytes, squeezed, it takes.
func (s *Scanner) taken(end int) {
	for i := range s.window[s.passed:] {
		if end <= 0 {
			break
		}
		s.skip = i
		end -= len(s.window[s.passed+i].squeeze())
	}
}

// groups are the parts of a text that a pattern's parentheses held.
func groups(text string, at []int) []string {
	out := make([]string, len(at)/2)
	for i := range out {
		if at[2*i] >= 0 {
			out[i] = text[at[2*i]:at[2*i+1]]
		}
	}
	return out
}

// squeezed is the window without spaces, so that no text is lost where it is wrapped, up to the line that goes beyond most bytes.
func (s *Scanner) squeezed(most int) string {
	var b strings.Builder
	for i := range s.window[s.passed:] {
		b.WriteString(s.window[s.passed+i].squeeze())
		if b.Len() > most {
			break
		}
	}
	return b.String()
}

// squeeze is the line's text as squeeze has it.
func (w *waiting) squeeze() string {
	if w.squeezed == nil {
		text := squeeze(w.Text)
		w.squeezed = &text
	}
	return *w.squeezed
}

var drawn = strings.NewReplacer("│", "", "║", "", "┃", "", "❱", "", "\\_", "_", "`", "", "“", "\"", "”", "\"", "’", "'", "‘", "'")

// squeeze takes out what wrapping, quoting and drawing put into a text: all spaces, marks of quotations, boxes, HTML.
func squeeze(line string) string {
	line = strings.TrimLeft(line, "> \t|")
	if plainText(line) {
		return unspaced(line)
	}
	if strings.Contains(line, "&") {
		line = html.UnescapeString(line)
	}
	line = drawn.Replace(line)
	return strings.Join(strings.Fields(line), "")
}

// plainText tells that a line has nothing but spaces to take out.
func plainText(line string) bool {
	for i := range len(line) {
		if c := line[i]; c >= utf8.RuneSelf || c == '&' || c == '`' || c == '\\' {
			return false
		}
	}
	return true
}

// unspaced takes out the spaces of ASCII.
func unspaced(line string) string {
	b := make([]byte, 0, len(line))
	for i := range len(line) {
		if c := line[i]; c != ' ' && (c < '\t' || c > '\r') {
			b = append(b, c)
		}
	}
	return string(b)
}

var exceptionLine = regexp.MustCompile(`^(?:E\s+)?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failed|Failure|Timeout|Found))\b:? ?(.*)$`)

// exception is the last line of a traceback whose text no row knows.
func (s *Scanner) exception(l Line) *Match {
	if len(s.frames) == 0 {
		return nil
	}
	m := exceptionLine.FindStringSubmatch(strings.TrimSpace(l.Text))
	if m == nil {
		return nil
	}
	frames := s.frames
	s.frames = nil // told once
	return &Match{Row: &Unnamed, Line: l, Groups: m, Frames: frames}
}
