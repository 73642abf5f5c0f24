package errortext

import (
	"math"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/literal"
)

// printed is a figure that a training prints of itself.
type printed struct {
	kind   int
	value  float64
	stated bool   // behind ":" or "="
	rest   string // of the line, behind it
}

// Kinds of figures, in the order of figureWords.
const (
	lossFigure = iota
	normFigure
	gnormFigure
	mfuFigure
	scaleFigure
	stepFigure
	iterFigure
	iterationFigure
	epochFigure
)

var (
	figureWords = []string{"loss", "norm", "gnorm", "mfu", "scale", "step", "iter", "iteration", "epoch"}
	figureSet   = literal.NewSet(figureWords...)
)

// eachFigure calls take with each figure that a line has.
func eachFigure(text string, take func(printed)) {
	figureSet.Each(text, len(text), func(kind, at int) bool {
		if named(kind, text[:at]) {
			if p, ok := valueBehind(text[at+len(figureWords[kind]):]); ok {
				p.kind = kind
				take(p)
			}
		}
		return true
	})
}

// others are parts of the names of losses that are not those of a step of training, or are limits.
var others = map[string]bool{"best": true, "lowest": true, "min": true, "max": true, "val": true, "valid": true, "validation": true, "eval": true, "test": true,
	"dev": true, "prev": true, "previous": true, "stop": true, "stopping": true, "nan": true, "inf": true, "init": true, "initial": true}

// ofTraining tells that a word has none of them.
func ofTraining(word string) bool {
	for part := range strings.FieldsFuncSeq(strings.ToLower(word), func(c rune) bool { return strings.ContainsRune("_/.- '\"", c) }) {
		if others[part] {
			return false
		}
	}
	return true
}

// named tells that what stands before a word makes it the name of a figure of its kind.
func named(kind int, before string) bool {
	alone := before == "" || before[len(before)-1] == '_' || !literal.InWord(before[len(before)-1])
	switch kind {
	case lossFigure:
		return alone && ofTraining(before[keyStart(strings.TrimRight(before, " ")):])
	case normFigure:
		return ofGradients(before)
	case scaleFigure:
		n := len(before) - len("loss ")
		return n >= 0 && (strings.EqualFold(before[n:], "loss ") || strings.EqualFold(before[n:], "loss_"))
	}
	return alone
}

// ofGradients tells that a text ends in "grad_" or the like, and that this is no limit.
func ofGradients(before string) bool {
	rest := strings.TrimRight(before, " _-")
	if len(before)-len(rest) > 1 {
		return false
	}
	for _, name := range []string{"gradient", "grad"} {
		if n := len(rest) - len(name); n >= 0 && strings.EqualFold(rest[n:], name) {
			limit := strings.ToLower(strings.TrimRight(rest[:n], " _-"))
			return !strings.HasSuffix(limit, "max") && !strings.HasSuffix(limit, "clip")
		}
	}
	return false
}

// keyStart is where the name that a text ends in begins.
func keyStart(text string) int {
	i := len(text)
	for i > 0 && (literal.InWord(text[i-1]) || text[i-1] == '/' || text[i-1] == '.' || text[i-1] == '-') {
		i--
	}
	return i
}

// valueBehind is the number that stands behind the name of a figure, which may be none that is finite.
func valueBehind(text string) (p printed, ok bool) {
	if text == "" || literal.InWord(text[0]) {
		return p, false
	}
	text, percent := after(text, "(%)")
	text, _ = after(text, "'", "\"")
	text = strings.TrimLeft(text, " \t")
	if v, rest, ends := stopped(text); ends {
		return printed{value: v, stated: true, rest: rest}, true
	}
	text, p.stated = after(text, ":", "=", "to:", "to ")
	text = strings.TrimLeft(text, " \t")
	text, _ = after(text, "tensor(", "[", "(", "'", "\"")
	if p.value, p.rest, ok = numberAhead(text); ok && percent {
		p.rest = "%" + p.rest
	}
	return p, ok
}

// stopped reads "is nan, stopping training", by which reference trainings end.
func stopped(text string) (v float64, rest string, ends bool) {
	text, is := after(text, "is ")
	if !is || !strings.Contains(text, "stopping") {
		return 0, "", false
	}
	return numberAhead(text)
}

// notFinite are spellings of what is no number, the longest first; a progress bar pads them as it does numbers.
var notFinite = []struct {
	word  string
	value float64
}{{"nan.0", math.NaN()}, {"nan", math.NaN()}, {"infinity", math.Inf(1)}, {"inf.0", math.Inf(1)}, {"inf", math.Inf(1)}}

// numberAhead is the number that a text begins with, and what is behind it.
func numberAhead(text string) (v float64, rest string, ok bool) {
	unsigned, _ := after(text, "+", "-")
	for _, w := range notFinite {
		if rest, is := after(unsigned, w.word); is && (rest == "" || !literal.InWord(rest[0])) {
			return w.value, rest, true
		}
	}
	n := digits(unsigned, 0)
	if n == 0 {
		return 0, "", false
	}
	if n < len(unsigned) && unsigned[n] == '.' {
		n = digits(unsigned, n+1)
	}
	if e := n + 1; n < len(unsigned) && unsigned[n]|0x20 == 'e' {
		if e < len(unsigned) && (unsigned[e] == '+' || unsigned[e] == '-') {
			e++
		}
		if end := digits(unsigned, e); end > e {
			n = end
		}
	}
	n += len(text) - len(unsigned)
	v, err := strconv.ParseFloat(text[:n], 64)
	return v, text[n:], err == nil
}

// digits is where the digits of a text from i on end.
func digits(text string, i int) int {
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	return i
}
