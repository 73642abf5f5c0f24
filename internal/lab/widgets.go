package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/formula"
)

// explorer is a page of widgets.
type explorer struct {
	ID, Title string
	About     []string // paragraphs
	Widgets   []widget
	Scripts   []string // besides explore.js
}

// widget is a thing to play with: controls, and the command line that they make. What it shows is that command's JSON.
type widget struct {
	ID, Title string
	About     string
	Command   string // its words, before what the controls add
	Controls  []control
	Values    []value
	Actions   []string // buttons beside the controls
	Presets   []preset
	Lines     bool   // the command prints several
	Measured  bool   // two answers differ
	Needs     string // a control without which it is not asked
	Session   bool   // it is a launch that waits: /api/sim
	Slow      bool   // it is asked by a button, not at each change
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
	Name, Label string
	Kind        kind
	Value       string // at first
	Min, Max    float64
	Step        float64
	Options     string // with spaces between
	From        string // where options are listed: cards, processors, models or optimizers
	Flag        string // "--tasks"; of a check, which is there or not; empty: a word of the command by itself
	Omit        string // the value at which it is left out
	Chars       string // of a text, besides letters and digits
	Help        string
}

// options are those of a choice.
func (c *control) options() []string {
	switch c.From {
	case "cards":
		return cards.Names()
	case "processors":
		return processors()
	case "models":
		return formula.PresetNames()
	case "optimizers":
		return formula.OptimizerNames()
	}
	return strings.Fields(c.Options)
}

// processors are the names of those in the table.
func processors() (names []string) {
	for i := range cards.CPUs {
		names = append(names, cards.CPUs[i].Name)
	}
	return names
}

// value is a figure that stands beside the picture as text.
type value struct {
	Name, Label string
	Path        string // in the JSON, with dots; # for how many
	Unit        string // "", "bytes", "s", "ms", "%", "x", "GB/s", "flops"
	Side        string
}

// preset is settings by a name.
type preset struct {
	Title string
	Set   string // a query
}

// pages are all explorers, in the order of the navigation: pages.json, which has no code for each of its rows.
var pages = sync.OnceValue(func() (all []explorer) {
	text, err := fs.ReadFile(assets, "assets/pages.json")
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(&all)
	}
	if err != nil {
		panic(err) // it is a part of the program
	}
	return all
})

// arguments are the words of the command line that a query makes. What is missing has its first value; what no control knows is an
// error, so that nothing is asked that was not meant.
func (w *widget) arguments(q url.Values, files *files) ([]string, error) {
	for name, values := range q {
		if !slices.ContainsFunc(w.Controls, func(c control) bool { return c.Name == name }) {
			return nil, advice.Failf("it has "+w.names(), "%s has no control %q", w.ID, name)
		}
		if len(values) > 1 {
			return nil, advice.Failf("give it once", "%s is given %d times", name, len(values))
		}
	}
	if w.Needs != "" && q.Get(w.Needs) == "" {
		return nil, advice.Failf("drop one on the page", "%s needs a %s", w.ID, w.Needs)
	}
	args := strings.Fields(w.Command)
	for i := range w.Controls {
		c := &w.Controls[i]
		v := c.Value
		if q.Has(c.Name) {
			v = q.Get(c.Name)
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
	for _, c := range w.Controls {
		all = append(all, c.Name)
	}
	return strings.Join(all, ", ")
}

// words are what of a command line a value of the control is. A value is never a word of its own that begins with a dash.
func (c *control) words(v string, files *files) ([]string, error) {
	if err := c.check(v); err != nil {
		return nil, err
	}
	switch {
	case c.Kind == check:
		if on, _ := strconv.ParseBool(v); on && c.Flag != "" {
			return []string{c.Flag}, nil
		}
		return nil, nil
	case v == c.Omit && (c.Omit != "" || slices.Contains([]kind{text, several, hidden, file}, c.Kind)):
		return nil, nil
	case c.Kind == file:
		path, err := files.path(v)
		if err != nil {
			return nil, err
		}
		v = path
	case c.Kind == percent:
		v += "%"
	case c.Kind == several:
		return strings.Fields(v), nil
	}
	if c.Flag == "" {
		return []string{v}, nil
	}
	return []string{c.Flag + "=" + v}, nil
}

// check refuses a value that the input could not have.
func (c *control) check(v string) error {
	switch c.Kind {
	case slider, number, percent:
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || !(n >= c.Min && n <= c.Max) {
			return advice.Failf(fmt.Sprintf("give a number from %g to %g", c.Min, c.Max), "%s is %q", c.Name, v)
		}
	case choice:
		if !slices.Contains(c.options(), v) {
			return advice.Failf("one of "+strings.Join(c.options(), ", "), "%s is %q", c.Name, v)
		}
	case check:
		if _, err := strconv.ParseBool(v); err != nil {
			return advice.Failf("give true or false", "%s is %q", c.Name, v)
		}
	case text, hidden, several:
		parts := []string{v}
		if c.Kind == several {
			parts = strings.Fields(v)
		}
		for _, part := range parts {
			if len(v) > mostText || part != "" && !made(c.Chars)(part) {
				return advice.Failf(c.Help, "%s is %.100q", c.Name, v)
			}
		}
	}
	return nil
}

// mostText is how long a text of a control may be.
const mostText = 200

// made reports whether a text is made of letters, digits and some other characters, and begins with one of the first two, or as a name
// does.
func made(others string) func(string) bool {
	return func(s string) bool {
		for i, r := range s {
			plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
			if !plain && (i == 0 && r != '_' && r != '$' || !strings.ContainsRune(others, r)) {
				return false
			}
		}
		return true
	}
}
