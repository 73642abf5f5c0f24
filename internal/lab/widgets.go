package lab

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
)

// widget is a thing to play with: controls, and the command line that they make. What it shows is that command's JSON.
type widget struct {
	id, title string
	about     string
	command   []string // its words, before what the controls add
	controls  []control
	values    []value
	actions   []string // buttons beside the controls
	presets   []preset
	lines     bool   // the command prints several
	measured  bool   // two answers differ
	needs     string // a control without which it is not asked
	session   bool   // it is a launch that waits: /api/sim
	slow      bool   // it is asked by a button, not at each change
}

// kind says how a control looks, and what it takes.
type kind string

const (
	slider  kind = "range"
	number  kind = "number"
	choice  kind = "select"
	check   kind = "checkbox"
	text    kind = "text"
	file    kind = "file"   // of those that were dropped on the page
	hidden  kind = "hidden" // it has no input: scripts of the page set it
	percent kind = "percent"
	several kind = "words" // with spaces between
)

// control is an input and what of a command line it is.
type control struct {
	name, label string
	kind        kind
	value       string // at first
	min, max    float64
	step        float64
	options     []string
	flag        string // "--tasks"; of a check, which is there or not; empty: a word of the command by itself
	omit        string // the value at which it is left out
	pattern     func(string) bool
	help        string
}

// value is a figure that stands beside the picture as text.
type value struct {
	name, label string
	path        string // in the JSON, with dots; # for how many
	unit        string // "", "bytes", "s", "ms", "%", "x", "GB/s", "flops"
	side        string
}

// preset is settings by a name.
type preset struct {
	title string
	set   url.Values
}

// arguments are the words of the command line that a query makes. What is missing has its first value; what no control knows is an
// error, so that nothing is asked that was not meant.
func (w *widget) arguments(q url.Values, files *files) ([]string, error) {
	for name, values := range q {
		if !slices.ContainsFunc(w.controls, func(c control) bool { return c.name == name }) {
			return nil, advice.Failf("it has "+w.names(), "%s has no control %q", w.id, name)
		}
		if len(values) > 1 {
			return nil, advice.Failf("give it once", "%s is given %d times", name, len(values))
		}
	}
	if w.needs != "" && q.Get(w.needs) == "" {
		return nil, advice.Failf("drop one on the page", "%s needs a %s", w.id, w.needs)
	}
	args := slices.Clone(w.command)
	for i := range w.controls {
		c := &w.controls[i]
		v := c.value
		if q.Has(c.name) {
			v = q.Get(c.name)
		}
		words, err := c.words(v, files)
		if err != nil {
			return nil, err
		}
		args = append(args, words...)
	}
	return args, nil
}

func (w *widget) names() string {
	var all []string
	for _, c := range w.controls {
		all = append(all, c.name)
	}
	return strings.Join(all, ", ")
}

// words are what of a command line a value of the control is. A value is never a word of its own that begins with a dash.
func (c *control) words(v string, files *files) ([]string, error) {
	if err := c.check(v); err != nil {
		return nil, err
	}
	switch {
	case c.kind == check:
		if on, _ := strconv.ParseBool(v); on && c.flag != "" {
			return []string{c.flag}, nil
		}
		return nil, nil
	case v == c.omit && (c.omit != "" || slices.Contains([]kind{text, several, hidden, file}, c.kind)):
		return nil, nil
	case c.kind == file:
		path, err := files.path(v)
		if err != nil {
			return nil, err
		}
		v = path
	case c.kind == percent:
		v += "%"
	case c.kind == several:
		return strings.Fields(v), nil
	}
	if c.flag == "" {
		return []string{v}, nil
	}
	return []string{c.flag + "=" + v}, nil
}

// check refuses a value that the input could not have.
func (c *control) check(v string) error {
	switch c.kind {
	case slider, number, percent:
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || !(n >= c.min && n <= c.max) {
			return advice.Failf(fmt.Sprintf("give a number from %g to %g", c.min, c.max), "%s is %q", c.name, v)
		}
	case choice:
		if !slices.Contains(c.options, v) {
			return advice.Failf("one of "+strings.Join(c.options, ", "), "%s is %q", c.name, v)
		}
	case check:
		if _, err := strconv.ParseBool(v); err != nil {
			return advice.Failf("give true or false", "%s is %q", c.name, v)
		}
	case text, hidden, several:
		parts := []string{v}
		if c.kind == several {
			parts = strings.Fields(v)
		}
		for _, part := range parts {
			if len(v) > mostText || part != "" && (c.pattern == nil || !c.pattern(part)) {
				return advice.Failf(c.help, "%s is %.100q", c.name, v)
			}
		}
	}
	return nil
}

// mostText is how long a text of a control may be.
const mostText = 200

// made reports whether a text is made of letters, digits and some other characters, and begins with one of the first two.
func made(others string) func(string) bool {
	return func(s string) bool {
		for i, r := range s {
			plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
			if !plain && (i == 0 || !strings.ContainsRune(others, r)) {
				return false
			}
		}
		return true
	}
}
