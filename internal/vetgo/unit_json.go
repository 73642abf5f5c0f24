package vetgo

import (
	"cmp"
	"encoding/json"
	"go/token"
	"io"

	"golang.org/x/tools/go/analysis"
)

// toldFailure is the JSON of an analyzer that failed.
type toldFailure struct {
	Error string `json:"error"`
}

// told is the JSON of a finding, as go vet has it.
type told struct {
	Category string        `json:"category,omitempty"`
	Posn     string        `json:"posn"`
	End      string        `json:"end"`
	Message  string        `json:"message"`
	Fixes    []toldFix     `json:"suggested_fixes,omitempty"`
	Related  []toldRelated `json:"related,omitempty"`
}

type toldFix struct {
	Message string     `json:"message"`
	Edits   []toldEdit `json:"edits"`
}

// toldEdit puts text in place of a file's bytes.
type toldEdit struct {
	Filename string `json:"filename"`
	Start    int    `json:"start"`
	End      int    `json:"end"`
	New      string `json:"new"`
}

type toldRelated struct {
	Posn    string `json:"posn"`
	End     string `json:"end"`
	Message string `json:"message"`
}

// tellJSON writes what was found by package and analyzer.
func (r *runner) tellJSON(w io.Writer, id string) error {
	rules := map[string]any{}
	for _, s := range r.order {
		if s.err != nil {
			rules[s.name] = toldFailure{s.err.Error()}
			continue
		}
		var all []told
		for _, d := range s.found {
			all = append(all, r.told(d))
		}
		if len(all) > 0 {
			rules[s.name] = all
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(map[string]map[string]any{id: rules}) // also where nothing was found: it was read
}

func (r *runner) told(d analysis.Diagnostic) told {
	at := func(p token.Pos) string { return r.pass.Fset.Position(p).String() }
	t := told{Category: d.Category, Posn: at(d.Pos), End: at(cmp.Or(d.End, d.Pos)), Message: d.Message}
	for _, f := range d.SuggestedFixes {
		t.Fixes = append(t.Fixes, toldFix{f.Message, r.edits(f)})
	}
	for _, also := range d.Related {
		t.Related = append(t.Related, toldRelated{at(also.Pos), at(cmp.Or(also.End, also.Pos)), also.Message})
	}
	return t
}

// edits are a fix's, by bytes.
func (r *runner) edits(f analysis.SuggestedFix) (all []toldEdit) {
	for _, e := range f.TextEdits {
		file := r.pass.Fset.File(e.Pos)
		all = append(all, toldEdit{file.Name(), file.Offset(e.Pos), file.Offset(cmp.Or(e.End, e.Pos)), string(e.NewText)})
	}
	return all
}
